"""Documents of XMark's structure, in words of our own.

`python -m tests.samples.xmark_documents` writes data/xmark.xml.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from random import Random

REGIONS = ("africa", "asia", "australia", "europe", "namerica", "samerica")
WORDS = """a ago all and anchor apple barn bell black blue boat bottle box brass bread bridge bright broken brown candle
chair clean clock cloud coat copper corner cup curious dark deep door drawer dry dust early empty engine evening farm
fine fire flat floor from garden gentle glass gold good gray green half hall handle harbour heavy hidden hill honey
hook house in iron island key kind kitchen ladder lamp late lead leather letter light linen little lock long mirror
moon morning nail narrow needle new night north oak of old on open orange paper parcel pearl pencil plain plate pocket
pond quiet rain red ring river road roof rope round rust salt sand school sea shelf ship short shutter silver slow
small smooth south spoon spring square station stone street summer table tall the thin thread tin to tower true under
upper velvet very warm water west wheel white wide wind window winter with wood wool yard yellow young""".split()  # noqa: SIM905 - a table
FIRST = ("Ada", "Bruno", "Carla", "Dario", "Elif", "Femi", "Goro", "Hanna", "Ivo", "Jana", "Kofi", "Lena")
LAST = ("Abel", "Berg", "Costa", "Dahl", "Egger", "Fiala", "Grün", "Horak", "Ito", "Jensen", "Kaya", "Lund")
COUNTRIES = ("Austria", "Ghana", "Japan", "Moldova, Republic Of", "Norway", "Peru", "United States")
PAYMENTS = ("Cash", "Creditcard", "Money order", "Personal Check")


class XMark:
    """Writes one document."""

    def __init__(self, seed: int, people: int, items: int, opened: int, closed: int, categories: int) -> None:
        self.random = Random(seed)
        # Of its own, so that lists within lists leave everything else as it is without them.
        self.within = Random(f"{seed}: lists within lists")
        self.people, self.items, self.opened, self.closed = people, items, opened, closed
        self.categories = categories

    def document(self) -> str:
        sections = [
            self.section("regions", self.regions()),
            self.section("categories", [self.category(number) for number in range(self.categories)]),
            self.section("catgraph", [self.edge() for _ in range(self.categories)] if self.categories else []),
            self.section("people", [self.person(number) for number in range(self.people)]),
            self.section("open_auctions", [self.open_auction(number) for number in range(self.opened)]),
            self.section("closed_auctions", [self.closed_auction() for _ in range(self.closed)]),
        ]
        return '<?xml version="1.0" standalone="yes"?>\n<site>\n' + "".join(sections) + "</site>\n"

    def section(self, name: str, parts: list[str]) -> str:
        return f"<{name}>\n{''.join(parts)}</{name}>\n"

    def regions(self) -> list[str]:
        ends = sorted(self.random.randint(0, self.items) for _ in REGIONS[1:])
        starts, ends = [0, *ends], [*ends, self.items]
        return [
            self.section(region, [self.item(number) for number in range(start, end)])
            for region, start, end in zip(REGIONS, starts, ends, strict=True)
        ]

    def item(self, number: int) -> str:
        featured = ' featured="yes"' if self.random.random() < 0.2 else ""
        categories = "".join(
            f'<incategory category="category{self.random.randrange(self.categories)}"/>\n'
            for _ in range(self.random.randint(1, 4) if self.categories else 0)
        )
        mails = "".join(self.mail() for _ in range(self.random.choice([0, 0, 1, 2])))
        return (
            f'<item id="item{number}"{featured}>\n<location>{self.random.choice(COUNTRIES)}</location>\n'
            f"<quantity>{self.random.randint(1, 3)}</quantity>\n<name>{self.words(2, 4)} </name>\n"
            f"<payment>{', '.join(self.random.sample(PAYMENTS, 2))}</payment>\n{self.description()}"
            f"<shipping>Will ship {self.random.choice(['internationally', 'only within country'])}</shipping>\n"
            f"{categories}<mailbox>\n{mails}</mailbox>\n</item>\n"
        )

    def mail(self) -> str:
        return (
            f"<mail>\n<from>{self.name()} mailto:{self.words(1, 1)}@example.org</from>\n"
            f"<to>{self.name()} mailto:{self.words(1, 1)}@example.com</to>\n"
            f"<date>{self.date()}</date>\n{self.text()}</mail>\n"
        )

    def category(self, number: int) -> str:
        return f'<category id="category{number}">\n<name>{self.words(1, 3)} </name>\n{self.description()}</category>\n'

    def edge(self) -> str:
        ends = [self.random.randrange(self.categories) for _ in range(2)]
        return f'<edge from="category{ends[0]}" to="category{ends[1]}"/>\n'

    def person(self, number: int) -> str:
        name = self.name()
        parts = [f"<name>{name}</name>\n<emailaddress>mailto:{name.split()[1]}@example.net</emailaddress>\n"]
        if self.some():
            parts.append(f"<phone>+{self.random.randint(1, 40)} ({self.random.randint(10, 999)}) 555</phone>\n")
        if self.some():
            parts.append(self.address())
        if self.some():
            parts.append(f"<homepage>http://www.example.net/~{name.split()[1]}</homepage>\n")
        if self.some():
            parts.append(
                f"<creditcard>{' '.join(str(self.random.randint(1000, 9999)) for _ in range(4))}</creditcard>\n"
            )
        if self.some():
            parts.append(self.profile())
        if self.some() and self.opened:
            watches = [f"open_auction{self.random.randrange(self.opened)}" for _ in range(self.random.randint(0, 4))]
            inside = "".join(f'<watch open_auction="{watch}"/>\n' for watch in watches)
            parts.append(f"<watches>\n{inside}</watches>\n")
        return f'<person id="person{number}">\n{"".join(parts)}</person>\n'

    def address(self) -> str:
        province = f"<province>{self.words(1, 1)}</province>\n" if self.some() else ""
        return (
            f"<address>\n<street>{self.random.randint(1, 99)} {self.words(1, 1)} St</street>\n<city>{self.words(1, 1)}"
            f"</city>\n<country>{self.random.choice(COUNTRIES)}</country>\n{province}"
            f"<zipcode>{self.random.randint(1, 40)}</zipcode>\n</address>\n"
        )

    def profile(self) -> str:
        interests = "".join(
            f'<interest category="category{self.random.randrange(self.categories)}"/>\n'
            for _ in range(self.random.randint(0, 4) if self.categories else 0)
        )
        education = f"<education>{self.random.choice(['College', 'High School'])}</education>\n" if self.some() else ""
        gender = f"<gender>{self.random.choice(['female', 'male'])}</gender>\n" if self.some() else ""
        age = f"<age>{self.random.randint(18, 90)}</age>\n" if self.some() else ""
        income = f' income="{self.random.uniform(9000, 150000):.2f}"' if self.random.random() < 0.9 else ""
        business = f"<business>{self.random.choice(['Yes', 'No'])}</business>\n"
        return f"<profile{income}>\n{interests}{education}{gender}{business}{age}</profile>\n"

    def open_auction(self, number: int) -> str:
        bidders = "".join(self.bidder() for _ in range(self.random.choice([0, 0, 1, 2, 3, 5, 8]) if self.people else 0))
        reserve = f"<reserve>{self.money()}</reserve>\n" if self.some() else ""
        privacy = "<privacy>Yes</privacy>\n" if self.some() else ""
        return (
            f'<open_auction id="open_auction{number}">\n<initial>{self.money()}</initial>\n{reserve}{bidders}'
            f"<current>{self.money()}</current>\n{privacy}{self.lot()}"
            f"<interval>\n<start>{self.date()}</start>\n<end>{self.date()}</end>\n</interval>\n</open_auction>\n"
        )

    def bidder(self) -> str:
        clock = ":".join(f"{self.random.randrange(limit):02}" for limit in (24, 60, 60))
        return (
            f"<bidder>\n<date>{self.date()}</date>\n<time>{clock}</time>\n{self.reference('personref', 'person')}"
            f"<increase>{self.random.randint(1, 20) * 1.5:.2f}</increase>\n</bidder>\n"
        )

    def closed_auction(self) -> str:
        seller, buyer = self.reference("seller", "person"), self.reference("buyer", "person")
        return (
            f"<closed_auction>\n{seller}{buyer}{self.reference('itemref', 'item')}<price>{self.money()}</price>\n"
            f"<date>{self.date()}</date>\n{self.lot(full=False)}</closed_auction>\n"
        )

    def lot(self, *, full: bool = True) -> str:
        who = self.reference("itemref", "item") + self.reference("seller", "person") if full else ""
        note = (
            f"<annotation>\n{self.reference('author', 'person')}{self.description()}"
            f"<happiness>{self.random.randint(1, 10)}</happiness>\n</annotation>\n"
        )
        ends = f"<quantity>{self.random.randint(1, 3)}</quantity>\n<type>Regular</type>\n"
        return who + note + ends if full else ends + note

    def reference(self, tag: str, kind: str) -> str:
        count = self.people if kind == "person" else self.items
        return f'<{tag} {kind}="{kind}{self.random.randrange(max(count, 1))}"/>\n'

    def description(self) -> str:
        if self.random.random() < 0.7:
            return f"<description>\n{self.text()}</description>\n"
        items = "".join(f"<listitem>\n{self.text()}{self.inner_list()}</listitem>\n" for _ in range(2))
        return f"<description>\n<parlist>\n{items}</parlist>\n</description>\n"

    def inner_list(self) -> str:
        if self.within.random() < 0.6:
            return ""
        items = "".join(
            f"<listitem>\n<text>\n{' '.join(self.within.sample(WORDS, 4))} <emph> <keyword> "
            f"{' '.join(self.within.sample(WORDS, 2))} </keyword> </emph> \n</text>\n</listitem>\n"
            for _ in range(self.within.randint(1, 2))
        )
        return f"<parlist>\n{items}</parlist>\n"

    def text(self) -> str:
        parts = []
        for _ in range(self.random.randint(1, 3)):
            parts.append(self.words(3, 12))
            tag = self.random.choice(["keyword", "bold", "emph", ""])
            if tag:
                parts.append(f"<{tag}> {self.words(1, 4)} </{tag}>")
        return f"<text>\n{' '.join(parts)} \n</text>\n"

    def words(self, least: int, most: int) -> str:
        return " ".join(self.random.choice(WORDS) for _ in range(self.random.randint(least, most)))

    def name(self) -> str:
        return f"{self.random.choice(FIRST)} {self.random.choice(LAST)}"

    def date(self) -> str:
        return (date(1998, 1, 1) + timedelta(days=self.random.randrange(1400))).strftime("%m/%d/%Y")

    def money(self) -> str:
        return f"{self.random.expovariate(1 / 80):.2f}"

    def some(self) -> bool:
        return self.random.random() < 0.5


def committed() -> str:
    """The text of data/xmark.xml."""
    return XMark(seed=7, people=90, items=60, opened=50, closed=40, categories=10).document()


if __name__ == "__main__":
    (Path(__file__).parents[2] / "data" / "xmark.xml").write_text(committed(), encoding="utf-8")
