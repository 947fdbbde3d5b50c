"""The kinds of documents that the parser is measured with: which columns are read, and the loop that a user writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lxml import etree

from tests.benchmarks import shape_documents as documents
from tests.benchmarks.shape_documents import CAC, CBC, MTCONNECT, NETEX, SIRI, Write

Element = etree._Element
Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of document.

    Attributes:
        name: What it is.
        row_bytes: The length of a row, on average.
        options: Of the source, without its path; the schema has the columns that are read.
        write: Writes a document of about so many rows, drawn from a seed.
        tag: The rows' tag, with its namespace.
        values: What a user reads of a row's element: the same columns.
        around: Tags of elements that enclose rows and are many, so that they are freed, too.
    """

    name: str
    row_bytes: int
    options: dict[str, str]
    write: Write
    tag: str
    values: Callable[[Element], Values]
    around: tuple[str, ...] = ()

    def loop(self, path: Path) -> int:
        """What a careful user writes: lxml's iterparse, elements freed behind. Returns the number of rows."""
        rows, tag, around, values = 0, self.tag, self.around, self.values
        for _, element in etree.iterparse(path, tag=(tag, *around)):
            if not around or element.tag == tag:
                values(element)
                rows += 1
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
        return rows


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)


def _float(text: str | None) -> float | None:
    return None if text is None else float(text)


def _texts(element: Element) -> Callable[[str], str | None]:
    """The texts of the children, by tag; of all of them, since that is faster than to choose."""
    return {child.tag: child.text for child in element}.get


def _children(element: Element) -> Callable[[str], Element | None]:
    """The children, by tag."""
    return {child.tag: child for child in element}.get


def _child(element: Element, tag: str) -> Element | None:
    """The first child with a tag, if there is one."""
    for child in element:
        if child.tag == tag:
            return child
    return None


def _text(element: Element | None, tag: str) -> str | None:
    """The text of the first child with a tag of an element that may be missing."""
    if element is not None:
        for child in element:
            if child.tag == tag:
                return child.text
    return None


def _text_of(element: Element | None) -> str | None:
    return None if element is None else element.text


def _both(place: Element | None, longitude: str, latitude: str) -> tuple[float | None, float | None]:
    """The coordinates in a place that may be missing."""
    if place is None:
        return None, None
    text = _texts(place)
    return _float(text(longitude)), _float(text(latitude))


def _post_values(row: Element) -> Values:
    get = row.get
    at, owner = datetime.fromisoformat(get("CreationDate", "")), _int(get("OwnerUserId"))
    return _int(get("Id")), _int(get("PostTypeId")), at, _int(get("Score")), get("Title"), get("Tags"), owner


def _case_values(case: Element) -> Values:
    get = case.get
    return get("name"), get("result"), _float(get("duration")), _text(_child(case, "failure"), "message")


def _city_values(city: Element) -> Values:
    return _text(city, "name"), city.get("id")


def _item_values(item: Element) -> Values:
    text = _texts(item)
    return item.get("id"), text("location"), _int(text("quantity")), text("name"), text("payment")


def _person_values(person: Element) -> Values:
    child = _children(person)
    profile = child("profile")
    income = None if profile is None else _float(profile.get("income"))
    return person.get("id"), _text_of(child("name")), _text_of(child("emailaddress")), income


def _auction_values(auction: Element) -> Values:
    text, item = _texts(auction), _child(auction, "itemref")
    return (
        auction.get("id"),
        _float(text("initial")),
        _float(text("current")),
        None if item is None else item.get("item"),
    )


def _report_values(report: Element) -> Values:
    text = _texts(report)
    return text("sid"), _int(text("hour")), _int(text("min")), _float(text("currtmp"))


def _position_values(position: Element) -> Values:
    get, text = position.get, position.text
    value = None if text == "UNAVAILABLE" else _float(text)
    return get("dataItemId"), datetime.fromisoformat(get("timestamp", "")), _int(get("sequence")), value


_JOURNEY, _PLACE, _RECORDED, _LINE, _VEHICLE, _LONGITUDE, _LATITUDE = (
    f"{{{SIRI}}}{name}"
    for name in (
        "MonitoredVehicleJourney",
        "VehicleLocation",
        "RecordedAtTime",
        "LineRef",
        "VehicleRef",
        "Longitude",
        "Latitude",
    )
)


def _activity_values(activity: Element) -> Values:
    journey = _child(activity, _JOURNEY)
    assert journey is not None
    child = _children(journey)
    line, vehicle, place = child(_LINE), child(_VEHICLE), child(_PLACE)
    longitude, latitude = _both(place, _LONGITUDE, _LATITUDE)
    recorded = datetime.fromisoformat(_text(activity, _RECORDED) or "")
    return recorded, _text_of(line), _text_of(vehicle), longitude, latitude


_STOP_NAME, _STOP_PLACE, _STOP_LONGITUDE, _STOP_LATITUDE = (
    f"{{{NETEX}}}{name}" for name in ("Name", "Location", "Longitude", "Latitude")
)


def _stop_values(stop: Element) -> Values:
    child = _children(stop)
    return stop.get("id"), _text_of(child(_STOP_NAME)), *_both(child(_STOP_PLACE), _STOP_LONGITUDE, _STOP_LATITUDE)


_ITEM = f"{{{CAC}}}Item"
_NUMBER, _QUANTITY, _AMOUNT, _NAME = (
    f"{{{CBC}}}{name}" for name in ("ID", "InvoicedQuantity", "LineExtensionAmount", "Name")
)


def _line_values(line: Element) -> Values:
    child = _children(line)
    quantity, amount, number = child(_QUANTITY), _float(_text_of(child(_AMOUNT))), _int(_text_of(child(_NUMBER)))
    assert quantity is not None
    return number, _float(quantity.text), quantity.get("unitCode"), amount, _text(child(_ITEM), _NAME)


def _article_values(row: Element) -> Values:
    citation = _child(row, "MedlineCitation")
    assert citation is not None
    article = _child(citation, "Article")
    assert article is not None
    child = _children(article)
    title, authors = child("ArticleTitle"), child("AuthorList")
    whole = None if title is None else "".join(title.itertext())  # type: ignore[arg-type]
    # A group among the authors has no last name, and its place.
    names = [] if authors is None else [_text(author, "LastName") for author in authors]
    return _int(_text(citation, "PMID")), citation.get("Status"), _text(child("Journal"), "Title"), whole, names or None


def _read(row_tag: str, schema: str, **paths: str) -> dict[str, str]:
    """Returns the options of a source: its rows, its columns, and the paths of those that need one."""
    return {"rowTag": row_tag, "schema": schema, **{f"path.{column}": path for column, path in paths.items()}}


_JOURNEY_PATH = "MonitoredVehicleJourney"
_ARTICLE_PATH = "MedlineCitation/Article"
_REPORT = _read("tempdata", "sid STRING, hour INT, min INT, currtmp DOUBLE")

SHAPES: tuple[Shape, ...] = (
    Shape(
        "StackExchange posts",
        1682,
        _read(
            "row",
            "_Id INT, _PostTypeId INT, _CreationDate TIMESTAMP, _Score INT, _Title STRING, _Tags STRING, "
            "_OwnerUserId INT",
        ),
        documents.write_posts,
        "row",
        _post_values,
    ),
    Shape(
        "NUnit test cases",
        2300,
        _read(
            "test-case",
            "_name STRING, _result STRING, _duration DOUBLE, message STRING",
            message="failure/message",
        ),
        documents.write_cases,
        "test-case",
        _case_values,
        ("test-suite",),
    ),
    Shape(
        "Mondial cities",
        156,
        _read("city", "name STRING, _id STRING"),
        documents.write_cities,
        "city",
        _city_values,
        ("province", "country"),
    ),
    Shape(
        "XMark items",
        2617,
        _read("item", "_id STRING, location STRING, quantity INT, name STRING, payment STRING"),
        documents.write_items,
        "item",
        _item_values,
    ),
    Shape(
        "XMark persons",
        442,
        _read("person", "_id STRING, name STRING, emailaddress STRING, income DOUBLE", income="profile/@income"),
        documents.write_persons,
        "person",
        _person_values,
    ),
    Shape(
        "XMark open auctions",
        2258,
        _read("open_auction", "_id STRING, initial DOUBLE, current DOUBLE, item STRING", item="itemref/@item"),
        documents.write_auctions,
        "open_auction",
        _auction_values,
    ),
    Shape("sensors, 30 of 100 irregular", 85, _REPORT, documents.write_irregular_sensor, "tempdata", _report_values),
    Shape("sensors, regular", 85, _REPORT, documents.write_sensor, "tempdata", _report_values),
    Shape(
        "MTConnect samples",
        130,
        _read("Position", "_dataItemId STRING, _timestamp TIMESTAMP, _sequence BIGINT, _VALUE DOUBLE")
        | {"nullValue": "UNAVAILABLE"},
        documents.write_positions,
        f"{{{MTCONNECT}}}Position",
        _position_values,
        (f"{{{MTCONNECT}}}ComponentStream",),
    ),
    Shape(
        "SIRI vehicles",
        740,
        _read(
            "VehicleActivity",
            "RecordedAtTime TIMESTAMP, line STRING, vehicle STRING, longitude DOUBLE, latitude DOUBLE",
            line=f"{_JOURNEY_PATH}/LineRef",
            vehicle=f"{_JOURNEY_PATH}/VehicleRef",
            longitude=f"{_JOURNEY_PATH}/VehicleLocation/Longitude",
            latitude=f"{_JOURNEY_PATH}/VehicleLocation/Latitude",
        ),
        documents.write_activities,
        f"{{{SIRI}}}VehicleActivity",
        _activity_values,
    ),
    Shape(
        "NeTEx stop points",
        245,
        _read(
            "ScheduledStopPoint",
            "_id STRING, Name STRING, longitude DOUBLE, latitude DOUBLE",
            longitude="Location/Longitude",
            latitude="Location/Latitude",
        ),
        documents.write_stops,
        f"{{{NETEX}}}ScheduledStopPoint",
        _stop_values,
    ),
    Shape(
        "UBL invoice lines",
        730,
        _read(
            "cac:InvoiceLine",
            "id INT, quantity DOUBLE, unit STRING, amount DOUBLE, name STRING",
            id="cbc:ID",
            quantity="cbc:InvoicedQuantity",
            unit="cbc:InvoicedQuantity/@unitCode",
            amount="cbc:LineExtensionAmount",
            name="cac:Item/cbc:Name",
        )
        | {"namespaces": f"cac {CAC}, cbc {CBC}"},
        documents.write_lines,
        f"{{{CAC}}}InvoiceLine",
        _line_values,
    ),
    Shape(
        "PubMed articles",
        3600,
        _read(
            "PubmedArticle",
            "pmid INT, status STRING, journal STRING, title STRING, authors ARRAY<STRING>",
            pmid="MedlineCitation/PMID",
            status="MedlineCitation/@Status",
            journal=f"{_ARTICLE_PATH}/Journal/Title",
            title=f"{_ARTICLE_PATH}/ArticleTitle",
            authors=f"{_ARTICLE_PATH}/AuthorList/Author/LastName",
        ),
        documents.write_articles,
        "PubmedArticle",
        _article_values,
    ),
)
