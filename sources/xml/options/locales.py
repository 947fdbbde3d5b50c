"""Numbers and names of months as the languages of Europe write them, for the option `locale`, as Java has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_BLANKS = " \xa0\u202f"
"""The blanks between groups of digits: Java knows one of them for each locale, and feeds have any."""

_NUMBERS = {
    ",.": "da de el es hr id is it nl pt ro sl tr en-AT en-BE en-DE en-DK en-NL en-SI fr-LU fr-MA",
    f",{_BLANKS}": "bg cs et fi fr hu lt lv nb nn no pl ru sk sv uk de-AT en-FI en-SE en-ZA es-CR pt-AO pt-CH pt-CV"
    " pt-GQ pt-GW pt-LU pt-MO pt-MZ pt-PT pt-ST pt-TL",
    ".,": "en ga es-CU es-DO es-GT es-HN es-MX es-NI es-PA es-PE es-PR es-SV es-US es-419 es-BR es-BZ",
    ".’'": "de-CH de-LI it-CH en-CH",
}
"""The decimal mark, and what may stand between groups of three digits, by locales; a language alone has all regions."""

_MONTHS = {
    "bg": "яну фев март апр май юни юли авг сеп окт ное дек",
    "cs": "led úno bře dub kvě čvn čvc srp zář říj lis pro",
    "da": "jan feb mar apr maj jun jul aug sep okt nov dec",
    "de": "Jan/Jän Feb März Apr Mai Juni Juli Aug Sept/Sep Okt Nov Dez",
    "el": "Ιαν Φεβ Μαρ Απρ Μαΐ Ιουν Ιουλ Αυγ Σεπ Οκτ Νοε Δεκ",
    "en": "Jan Feb Mar Apr May Jun/June Jul/July Aug Sep/Sept Oct Nov Dec",
    "es": "ene feb mar abr may jun jul ago sept/sep/set oct nov dic",
    "et": "jaan veebr märts apr mai juuni juuli aug sept okt nov dets",
    "fi": "tammik helmik maalisk huhtik toukok kesäk heinäk elok syysk lokak marrask jouluk",
    "fr": "janv/jan févr/fév mars/mar avr mai juin/jui juil/juill août sept oct nov déc",
    "ga": "Ean Feabh Márta Aib Beal Meith Iúil Lún MFómh DFómh Samh Noll",
    "hr": "sij velj ožu tra svi lip srp kol ruj lis stu pro",
    "hu": "jan febr márc ápr máj jún júl aug szept okt nov dec",
    "id": "Jan Feb Mar Apr Mei Jun Jul Agu Sep Okt Nov Des",
    "is": "jan feb mar apr maí jún júl ágú sep okt nóv des",
    "it": "gen feb mar apr mag giu lug ago set ott nov dic",
    "lt": "saus vas kov bal geg birž liep rugp rugs spal lapkr gruod",
    "lv": "janv febr marts apr maijs jūn jūl aug sept okt nov dec",
    "nb": "jan feb mar/mars apr mai jun/juni jul/juli aug sep okt nov des",
    "nl": "jan feb mrt apr mei jun jul aug sep okt nov dec",
    "pl": "sty lut mar kwi maj cze lip sie wrz paź lis gru",
    "pt": "jan fev mar abr mai jun jul ago set out nov dez",
    "ro": "ian feb mar apr mai iun iul aug sept oct nov dec",
    "ru": "янв февр мар апр мая июн июл авг сент окт нояб дек",
    "sk": "jan feb mar apr máj jún júl aug sep okt nov dec",
    "sl": "jan feb mar apr maj jun jul avg sep okt nov dec",
    "sv": "jan feb mars apr maj juni juli aug sep okt nov dec",
    "tr": "Oca Şub Mar Nis May Haz Tem Ağu Eyl Eki Kas Ara",
    "uk": "січ лют бер квіт трав черв лип серп вер жовт лист груд",
}
"""The short names of months in dates; a point may follow."""

_FULL_MONTHS = {
    "bg": "януари февруари март април май юни юли август септември октомври ноември декември",
    "cs": "ledna února března dubna května června července srpna září října listopadu prosince",
    "da": "januar februar marts april maj juni juli august september oktober november december",
    "de": "Januar/Jänner Februar März April Mai Juni Juli August September Oktober November Dezember",
    "el": "Ιανουαρίου Φεβρουαρίου Μαρτίου Απριλίου Μαΐου Ιουνίου Ιουλίου Αυγούστου Σεπτεμβρίου"
    " Οκτωβρίου Νοεμβρίου Δεκεμβρίου",
    "en": "January February March April May June July August September October November December",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre diciembre",
    "et": "jaanuar veebruar märts aprill mai juuni juuli august september oktoober november detsember",
    "fi": "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta"
    " syyskuuta lokakuuta marraskuuta joulukuuta",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "ga": "Eanáir Feabhra Márta Aibreán Bealtaine Meitheamh Iúil Lúnasa Meán_Fómhair Deireadh_Fómhair Samhain Nollaig",
    "hr": "siječnja veljače ožujka travnja svibnja lipnja srpnja kolovoza rujna listopada studenoga prosinca",
    "hu": "január február március április május június július augusztus szeptember október november december",
    "id": "Januari Februari Maret April Mei Juni Juli Agustus September Oktober November Desember",
    "is": "janúar febrúar mars apríl maí júní júlí ágúst september október nóvember desember",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "lt": "sausio vasario kovo balandžio gegužės birželio liepos rugpjūčio rugsėjo spalio lapkričio gruodžio",
    "lv": "janvāris februāris marts aprīlis maijs jūnijs jūlijs augusts septembris oktobris novembris decembris",
    "nb": "januar februar mars april mai juni juli august september oktober november desember",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "ro": "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "sk": "januára februára marca apríla mája júna júla augusta septembra októbra novembra decembra",
    "sl": "januar februar marec april maj junij julij avgust september oktober november december",
    "sv": "januari februari mars april maj juni juli augusti september oktober november december",
    "tr": "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
    "uk": "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
}
"""The full names of the months in dates, in the case that they have there; an underscore is a blank."""

_SAME = {"no": "nb", "nn": "nb"}


def locale(name: str, given: str) -> str:
    """Checks the name of a locale.

    >>> locale("locale", "de-de")
    'de-DE'
    """
    language, _, region = given.strip().replace("_", "-").partition("-")
    tag = f"{language.lower()}-{region.upper()}".strip("-")
    try:
        marks(tag)
    except ValueError:
        known = ", ".join(sorted({each.partition("-")[0] for each in " ".join(_NUMBERS.values()).split()}))
        raise UsageError(f"{name} '{given}' is not known", hint=f"as de-DE, of the languages {known}") from None
    return tag


@lru_cache(maxsize=16)
def marks(tag: str) -> tuple[str, str]:
    """The decimal mark of a locale, and the characters that may separate groups of digits.

    Raises:
        ValueError: It is not known.

    >>> marks("de-DE"), marks("de-CH"), marks("en")
    ((',', '.'), ('.', "’'"), ('.', ','))
    """
    by_locale = {each: form for form, listed in _NUMBERS.items() for each in listed.split()}
    form = by_locale.get(tag) or by_locale.get(tag.partition("-")[0])
    if form is None:
        raise ValueError(f"{tag} is not known")
    return form[0], form[1:]


def months(tag: str, *, full: bool = False) -> list[str]:
    r"""The names of the months in a locale, each as a regular expression.

    >>> print(*months("de-AT")[:3], *months("cs", full=True)[:2])
    (?:Jan|Jän)\.? (?:Feb)\.? (?:März)\.? (?:ledna) (?:února)
    """
    language = tag.partition("-")[0]
    names = (_FULL_MONTHS if full else _MONTHS)[_SAME.get(language, language)].split()
    return [f"(?:{name.replace('/', '|').replace('_', ' ')}){'' if full else chr(92) + '.?'}" for name in names]


@dataclass(frozen=True, slots=True)
class LocaleNumbers:
    """Rewrites numbers of a locale to plain ones; others get a suffix, so that no type can parse them.

    Groups have three digits: `1.5` is no number where 1,5 is meant, and never 15.
    """

    tag: str

    @property
    def _regex(self) -> str:
        decimal, groups = (f"[{re.escape(each)}]" for each in marks(self.tag))
        whole = rf"(?:[0-9]{{1,3}}(?:{groups}[0-9]{{3}})+|[0-9]+)"
        return rf"^[-−]?(?:{whole}(?:{decimal}[0-9]*)?|{decimal}[0-9]+)(?:E-?[0-9]+)?$"

    def rewrite(self, texts: Any) -> pa.StringArray:
        """Rewrites the texts; blank texts and nulls are unchanged.

        >>> import pyarrow as pa
        >>> LocaleNumbers("de-DE").rewrite(pa.array(["1.234,5", "-0,50", "1.5", "", None])).to_pylist()
        ['1234.5', '-0.50', '1.5 is not a number of de-DE', '', None]
        """
        import pyarrow.compute

        pc: Any = pyarrow.compute
        decimal, groups = marks(self.tag)
        fits = pc.or_(pc.match_substring_regex(texts, self._regex), pc.equal(texts, ""))
        plain = texts
        for mark, instead in (*((group, "") for group in groups), (decimal, "."), ("−", "-")):
            plain = pc.replace_substring(plain, mark, instead)
        refused = pc.binary_join_element_wise(texts, f"is not a number of {self.tag}", " ")
        rewritten: pa.StringArray = pc.if_else(fits, plain, refused)
        return rewritten

    def reads(self, text: str) -> bool:
        """Whether a text is a number of the locale."""
        return re.fullmatch(self._regex, text) is not None

    def of_pattern(self, pattern: str) -> str:
        """Rewrites every constant of a pattern's text; ValueError if one is no number of the locale.

        >>> [LocaleNumbers("de-DE").of_pattern(text) for text in ("1.500", "1,5", '["1.000,5",2.000)', "{*}")]
        ['1500', '1.5', '["1000.5",2000)', '{*}']
        """
        bare = pattern.strip()
        if re.fullmatch(self._regex, bare):
            return self._plain(bare)
        return re.sub(r'"([^"]*)"|([^\s\[\](){},"]+)', self._constant, bare)

    def _constant(self, found: re.Match[str]) -> str:
        if found[2] in ("*", "null"):
            return found[2]
        plain = self._plain(found[2] or found[1])
        return plain if found[2] else f'"{plain}"'

    def _plain(self, number: str) -> str:
        if not re.fullmatch(self._regex, number.strip()):
            raise ValueError(f"{number} is not a number of {self.tag}")
        decimal, groups = marks(self.tag)
        return number.strip().translate({**dict.fromkeys(map(ord, groups)), ord(decimal): ".", ord("−"): "-"})


_BY_MARKS = ("de-DE", "en-US", "fr-FR", "de-CH")
"""A locale for each kind of marks: 1.234,5, 1,234.5, 1 234,5 and 1\u2019234.5."""


def number_readings(text: str) -> dict[str, str]:
    """The plain numbers that a text is in locales; of those that read it alike the first.

    >>> number_readings("1,234"), number_readings("1.234,5"), number_readings("1,5"), number_readings("12,34.5")
    ({'de-DE': '1.234', 'en-US': '1234'}, {'de-DE': '1234.5'}, {'de-DE': '1.5'}, {})
    """
    return {tag: plain for tag, (plain,) in readings_of([text]).items()}


def readings_of(texts: Sequence[str], given: str | None = None) -> dict[str, list[str]]:
    """The same for texts that one locale reads, `given` before others; none where one begins with a zero, as codes do.

    >>> readings_of(["1,5", "1.234"]), readings_of(["1,5", "1.5"]), readings_of(["00,5"])
    ({'de-DE': ['1.5', '1234']}, {}, {})
    """
    found: dict[str, list[str]] = {}
    for tag in (*([given] if given else []), *_BY_MARKS):
        numbers = LocaleNumbers(tag)
        if all(numbers.reads(text) and not _CODE.match(text) for text in texts):
            plain = [numbers.of_pattern(text) for text in texts]
            if plain not in found.values():
                found[tag] = plain
    return found


_CODE = re.compile("[-−]?0[0-9]")
