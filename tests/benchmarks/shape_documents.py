"""XML documents as they are in reality, of any length.

The rows of a document are a few hundred different ones, drawn from a seed and repeated with numbers of their own.
Whatever is optional is sometimes missing, and texts contain a reference here and there.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from tests.samples.xmark_documents import WORDS, XMark
from xmlstream.sources.generators.sensors import write_sensors

MTCONNECT = "urn:mtconnect.org:MTConnectStreams:1.3"
SIRI = "http://www.siri.org.uk/siri"
NETEX = "http://www.netex.org.uk/netex"
UBL = "urn:oasis:names:specification:ubl:schema:xsd:"
CAC, CBC = f"{UBL}CommonAggregateComponents-2", f"{UBL}CommonBasicComponents-2"

VARIETY = 300
"""How many different rows a document has, at most."""

ID = "\0"
"""Where the number of a row is written."""

Write = Callable[[Path, int, int], None]
"""Writes a document of about so many rows, drawn from a seed."""


class Draws(Random):
    """What rows are made of."""

    def words(self, least: int, most: int) -> str:
        """So many words; one text in fifteen has a reference."""
        words = self.choices(WORDS, k=self.randint(least, most))
        return " ".join(words) + self.some(1 / 15, " &amp; Grün")

    def some(self, part: float, text: str) -> str:
        """The text, or with the rest of the probability nothing."""
        return text if self.random() < part else ""

    def time(self) -> str:
        """A moment of 2024."""
        moment = datetime(2024, 1, 1) + timedelta(milliseconds=self.randrange(31_536_000_000))
        return moment.isoformat(timespec="milliseconds")

    def many(self, least: int, most: int, text: Callable[[], str]) -> str:
        """So many of them, each drawn by itself."""
        return "".join(text() for _ in range(self.randint(least, most)))


Group = Callable[[Draws], tuple[str, str, int]]
"""Draws what is before and behind some rows, and how many they are."""


def _document(around: str, row: Callable[[Draws], str], group: Group = lambda _: ("", "", 1000)) -> Write:
    """Returns what writes such rows, in groups, within the elements with these start tags."""
    ends = "".join(f"</{tag}>\n" for tag in reversed(re.findall(r"<(\S+?)[\s>]", around)))

    def write(path: Path, rows: int, seed: int) -> None:
        draws = Draws(seed)
        drawn = [row(draws).encode().split(ID.encode()) for _ in range(min(VARIETY, rows))]
        with path.open("wb") as file:
            file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n{around}\n'.encode())
            number = 0
            while number < rows:
                before, behind, size = group(draws)
                chosen = draws.choices(drawn, k=min(size, rows - number))
                file.write(before.encode())
                file.writelines((b"%d" % i).join(parts) for i, parts in enumerate(chosen, number))
                file.write(behind.encode())
                number += len(chosen)
            file.write(ends.encode())

    return write


def _post(draws: Draws) -> str:
    """A post of StackExchange: everything is an attribute, and the body is HTML with its markup escaped."""
    code = "&lt;code&gt;a &amp;lt; b&lt;/code&gt;"
    body = draws.many(1, 7, lambda: f"&lt;p&gt;{draws.words(10, 90)} {code}&lt;/p&gt;&#xA;&#xA;")
    tags = draws.many(1, 5, lambda: f"&lt;{draws.choice(WORDS)}&gt;")
    asks = draws.random() < 0.4
    kind = f'ViewCount="{draws.randrange(10**5)}"' if asks else f'ParentId="{draws.randrange(10**6)}"'
    title = f'Title="{draws.words(4, 12)}?" Tags="{tags}" AnswerCount="{draws.randrange(9)}" ' if asks else ""
    owner = draws.some(0.95, f'OwnerUserId="{draws.randrange(10**6)}" ')
    editor = draws.some(0.5, f'LastEditorUserId="{draws.randrange(10**6)}" LastEditDate="{draws.time()}" ')
    return f"""  <row Id="{ID}" PostTypeId="{1 if asks else 2}" CreationDate="{draws.time()}" \
Score="{draws.randint(-3, 90)}" {kind} Body="{body}" {owner}{editor}LastActivityDate="{draws.time()}" \
{title}CommentCount="{draws.randrange(9)}" ContentLicense="CC BY-SA 4.0" />
"""


write_posts = _document("<posts>", _post)


def _case(draws: Draws) -> str:
    """A case of NUnit, most of them passed; messages and outputs are in CDATA."""
    name, place = "_".join(draws.sample(WORDS, 5)), ".".join(draws.sample(WORDS, 4))
    result = draws.choice(["Passed"] * 8 + ["Failed", "Skipped"])
    trace = draws.many(5, 20, lambda: f"   at {place}.{draws.choice(WORDS)}[T](Func`2 each) in C:\\{place}.cs:line 7\n")
    failure = f"""<failure>
<message><![CDATA[  Expected: <{draws.words(2, 9)}>\n  But was:  null]]></message>
<stack-trace><![CDATA[{trace}]]></stack-trace>
</failure>
"""
    properties = draws.many(1, 4, lambda: f'<property name="Category" value="{draws.words(1, 4)}" />\n')
    output = draws.many(4, 24, lambda: f"{draws.time()} INFO  {place} - {draws.words(8, 20)}\n")
    return f"""<test-case id="0-{ID}" name="{name}({ID},&quot;a&quot;)" fullname="{place}.Tests.{name}({ID})" \
methodname="{name}" classname="{place}.Tests" runstate="Runnable" seed="{draws.randrange(10**9)}" result="{result}" \
start-time="{draws.time()}Z" end-time="{draws.time()}Z" duration="{draws.expovariate(9):.6f}" asserts="1">
{draws.some(0.7, f"<properties>{properties}</properties>")}
{failure if result == "Failed" else ""}{draws.some(0.9, f"<output><![CDATA[{output}]]></output>")}
</test-case>
"""


def _suites(draws: Draws) -> tuple[str, str, int]:
    kinds = ["Assembly", "TestSuite", "TestSuite", "TestFixture", "ParameterizedMethod"][: draws.randint(1, 5)]
    before = "".join(f'<test-suite type="{kind}" name="{draws.choice(WORDS)}" result="Passed">\n' for kind in kinds)
    return before, "</test-suite>\n" * len(kinds), draws.randint(1, 30)


write_cases = _document('<test-run id="0" engine-version="3.16.3.0">', _case, _suites)


def _city(draws: Draws) -> str:
    """A city of Mondial, with its population in several years or none."""
    capital = draws.some(0.06, 'is_country_cap="yes" ')
    where = f"<longitude>{draws.uniform(0, 180):.2f}</longitude><latitude>{draws.uniform(-90, 90):.2f}</latitude>"
    people = draws.many(
        0, 2, lambda: f'<population year="{draws.randint(80, 99)}">{draws.randrange(10**6)}</population>'
    )
    return f"""<city id="cty-{ID}" {capital}country="c{draws.randrange(200)}"><name>{draws.words(1, 2)}</name>\
{draws.some(0.6, where)}{people}</city>
"""


def _province(draws: Draws) -> tuple[str, str, int]:
    name = f'<name>{draws.choice(WORDS)}</name><population year="95">{draws.randrange(10**8)}</population>\n'
    province = draws.some(0.7, f'<province id="p{draws.randrange(999)}">{name}')
    country = f'<country car_code="X" area="{draws.randrange(10**6)}">{name}'
    return country + province, "</province></country>\n" if province else "</country>\n", draws.randint(2, 40)


write_cities = _document("<mondial>", _city, _province)


class LongTexts(XMark):
    """Our generator of XMark, with texts as long as those of the original."""

    def text(self) -> str:
        more = self.words(60, 260) + (" salt &amp; oil" if self.some() else "")
        return super().text().replace("<text>\n", f"<text>\n{more} ")


def _xmark(kind: str, around: str) -> Write:
    """Returns what writes one section of an XMark document, at the references of factor 1."""

    def row(draws: Draws) -> str:
        site = LongTexts(draws.randrange(10**9), 25_500, 21_750, 12_000, 9750, 1000)
        text: str = getattr(site, kind)(0)
        return text.replace(f'id="{kind}0"', f'id="{kind}{ID}"', 1)

    return _document(around, row)


write_items = _xmark("item", "<site>\n<regions>\n<europe>")
write_persons = _xmark("person", "<site>\n<people>")
write_auctions = _xmark("open_auction", "<site>\n<open_auctions>")


def irregular(path: Path, to: Path, seed: int = 1) -> None:
    """30 of 100 tuples without one leaf, with the leaves in another order, with a comment, or with a reference."""
    random = Random(seed)
    leaf = re.compile(rb"<(\w+)>[^<]*</\1>")

    def disturbed(line: bytes) -> bytes:
        if not line.startswith(b"<tempdata>") or random.random() >= 0.3:
            return line
        leaves = [found[0] for found in leaf.finditer(line, 10)]
        match random.randrange(4):
            case 0:
                leaves.pop(random.randrange(4))
            case 1:
                random.shuffle(leaves)
            case 2:
                leaves.insert(random.randrange(4), b"<!-- checked -->")
            case _:
                leaves[0] = b"<sid>S&#49;</sid>"
        return b"<tempdata>" + b"".join(leaves) + b"</tempdata>\n"

    with path.open("rb") as source, to.open("wb") as target:
        target.writelines(map(disturbed, source))


def write_sensor(path: Path, rows: int, seed: int) -> None:
    """One sensor, with a punctuation for every 1,000 reports."""
    with tempfile.TemporaryDirectory(dir=path.parent) as directory:
        an_hour = min(rows, 1000)
        (written,) = write_sensors(directory, 1, rows // an_hour, 1, an_hour, seed)
        written.replace(path)


def write_irregular_sensor(path: Path, rows: int, seed: int) -> None:
    """The same, with 30 of 100 reports irregular."""
    regular = path.with_suffix(".regular")
    write_sensor(regular, rows, seed)
    irregular(regular, path, seed)
    regular.unlink()


def _position(draws: Draws) -> str:
    """A sample of MTConnect: the value is the element's own text, or UNAVAILABLE."""
    axis = draws.choice("XYZABC")
    value = draws.some(0.98, f"{draws.uniform(-500, 500):.{draws.randint(1, 10)}f}") or "UNAVAILABLE"
    name = draws.some(0.8, f' name="{axis}{draws.choice(["abs", "com", "act &amp; com"])}"')
    type_ = draws.some(0.7, f' subType="{draws.choice(["ACTUAL", "COMMANDED"])}"')
    return f"""<Position dataItemId="{axis}{draws.randrange(9)}" timestamp="{draws.time()}Z" \
sequence="{ID}"{name}{type_}>{value}</Position>
"""


def _component(draws: Draws) -> tuple[str, str, int]:
    before = f'<ComponentStream component="Linear" name="X" componentId="c{draws.randrange(99)}">\n<Samples>\n'
    events = f'<Events><AxisState dataItemId="s" timestamp="{draws.time()}Z" sequence="1">HOME</AxisState></Events>'
    return before, f"</Samples>\n{draws.some(0.5, events)}</ComponentStream>\n", draws.randint(5, 60)


write_positions = _document(
    f'<MTConnectStreams xmlns="{MTCONNECT}">\n<Streams>\n<DeviceStream name="M" uuid="m">', _position, _component
)


def _activity(draws: Draws) -> str:
    """A vehicle of SIRI: a default namespace, and leaves at three depths."""
    dated = f"<DatedVehicleJourneyRef>{draws.randrange(9999)}</DatedVehicleJourneyRef>"
    place = f"<Longitude>{draws.uniform(-3, 1):.6f}</Longitude><Latitude>{draws.uniform(50, 55):.6f}</Latitude>"
    line = draws.randrange(400)
    return f"""<VehicleActivity>
<RecordedAtTime>{draws.time()}+00:00</RecordedAtTime>
{draws.some(0.8, f"<ItemIdentifier>i{ID}</ItemIdentifier>")}
<ValidUntilTime>{draws.time()}+00:00</ValidUntilTime>
<MonitoredVehicleJourney>
<LineRef>{line}</LineRef>
<DirectionRef>{draws.choice(["inbound", "outbound"])}</DirectionRef>
{draws.some(0.6, f"<FramedVehicleJourneyRef><DataFrameRef>x</DataFrameRef>{dated}</FramedVehicleJourneyRef>")}
<PublishedLineName>{line}</PublishedLineName>
<OperatorRef>OP{draws.randrange(99)}</OperatorRef>
<OriginRef>{draws.randrange(10**9)}</OriginRef>
<OriginName>{draws.words(2, 4)}</OriginName>
{draws.some(0.9, f"<DestinationName>{draws.words(2, 4)}</DestinationName>")}
{draws.some(0.9, f"<VehicleLocation>{place}</VehicleLocation>")}
{draws.some(0.7, f"<Bearing>{draws.uniform(0, 360):.1f}</Bearing>")}
<VehicleRef>V-{ID}</VehicleRef>
</MonitoredVehicleJourney>
</VehicleActivity>
"""


write_activities = _document(
    f'<Siri xmlns="{SIRI}" version="2.0">\n<ServiceDelivery>\n<VehicleMonitoringDelivery>', _activity
)


def _stop(draws: Draws) -> str:
    """A stop of NeTEx."""
    place = f"<Longitude>{draws.uniform(5, 25):.6f}</Longitude>\n<Latitude>{draws.uniform(58, 70):.6f}</Latitude>\n"
    return f"""<ScheduledStopPoint version="{draws.randint(1, 9)}" id="XYZ:ScheduledStopPoint:{ID}">
<Name>{draws.words(1, 4)}</Name>{draws.some(0.3, f"<ShortName>{draws.choice(WORDS)}</ShortName>")}
{draws.some(0.9, f"<Location>{place}</Location>")}{draws.some(0.5, "<PublicCode>7</PublicCode>")}
{draws.some(0.4, f'<StopAreas><StopAreaRef ref="XYZ:StopArea:{draws.randrange(99)}"/></StopAreas>')}
</ScheduledStopPoint>
"""


write_stops = _document(
    f'<PublicationDelivery xmlns="{NETEX}" version="1.1">\n<dataObjects>\n<scheduledStopPoints>', _stop
)


def _line(draws: Draws) -> str:
    """A line of an invoice in UBL: prefixes everywhere."""
    price, count = draws.randrange(1, 10**5) / 100, draws.randint(1, 40)
    properties = draws.many(
        0,
        2,
        lambda: (
            f"""<cac:AdditionalItemProperty><cbc:Name>{draws.choice(WORDS)}</cbc:Name>\
<cbc:Value>{draws.words(1, 2)}</cbc:Value></cac:AdditionalItemProperty>
"""
        ),
    )
    return f"""<cac:InvoiceLine>
<cbc:ID>{ID}</cbc:ID>{draws.some(0.3, f"<cbc:Note>{draws.words(3, 12)}</cbc:Note>")}
<cbc:InvoicedQuantity unitCode="{draws.choice(["C62", "KGM", "HUR"])}">{count}</cbc:InvoicedQuantity>
<cbc:LineExtensionAmount currencyID="EUR">{price * count:.2f}</cbc:LineExtensionAmount>
{draws.some(0.2, "<cbc:AccountingCost>BookingCode001</cbc:AccountingCost>")}
<cac:Item>
<cbc:Description>{draws.words(5, 15)}</cbc:Description>
<cbc:Name>{draws.words(1, 4)}</cbc:Name>
<cac:ClassifiedTaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>25</cbc:Percent>\
<cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:ClassifiedTaxCategory>
{properties}</cac:Item>
<cac:Price><cbc:PriceAmount currencyID="EUR">{price:.2f}</cbc:PriceAmount></cac:Price>
</cac:InvoiceLine>
"""


write_lines = _document(f'<Invoice xmlns="{UBL}Invoice-2" xmlns:cac="{CAC}" xmlns:cbc="{CBC}">', _line)


def _article(draws: Draws) -> str:
    """An article of PubMed: leaves far down, several authors, markup in some titles."""
    authors = draws.many(
        1,
        9,
        lambda: (
            f"""<Author ValidYN="Y"><LastName>{draws.words(1, 1)}</LastName>\
<ForeName>{draws.choice(WORDS)}</ForeName><Initials>A</Initials></Author>
"""
        ),
    )
    abstract = draws.many(1, 4, lambda: f'<AbstractText Label="METHODS">{draws.words(40, 120)}</AbstractText>\n')
    headings = draws.many(
        3,
        14,
        lambda: (
            f"""<MeshHeading><DescriptorName UI="D{draws.randrange(10**6)}" \
MajorTopicYN="N">{draws.words(1, 3)}</DescriptorName></MeshHeading>
"""
        ),
    )
    date = f"<Year>{draws.randint(1990, 2024)}</Year><Month>05</Month><Day>06</Day>"
    return f"""<PubmedArticle>
<MedlineCitation Status="{draws.choice(["MEDLINE", "PubMed-not-MEDLINE"])}" Owner="NLM">
<PMID Version="1">{ID}</PMID>
<DateCompleted>{date}</DateCompleted>
<Article PubModel="Print">
<Journal><ISSN IssnType="Print">0027-8424</ISSN><JournalIssue CitedMedium="Print"><Volume>7</Volume>\
<PubDate>{date}</PubDate></JournalIssue><Title>{draws.words(2, 6)}</Title></Journal>
<ArticleTitle>{draws.words(6, 18)}{draws.some(0.2, f" of <i>{draws.words(1, 2)}</i> cells<sub>2</sub>")}</ArticleTitle>
{draws.some(0.9, f"<Abstract>{abstract}</Abstract>")}
<AuthorList CompleteYN="Y">
{authors}{draws.some(0.1, '<Author ValidYN="Y"><CollectiveName>The Group</CollectiveName></Author>')}</AuthorList>
<Language>eng</Language>
</Article>
<MeshHeadingList>
{headings}</MeshHeadingList>
</MedlineCitation>
<PubmedData><ArticleIdList><ArticleId IdType="pubmed">{ID}</ArticleId></ArticleIdList></PubmedData>
</PubmedArticle>
"""


write_articles = _document("<PubmedArticleSet>", _article)
