"""Functions of Spark that a query may call, by name: scalars, aggregates, functions before OVER, collections.

Every other function is refused with a reason. A scalar must depend on its arguments alone, so that a slice that runs
again after a crash gives the same result; an aggregate must not depend on the order of tuples, which a merge does not
keep.

`collect_list` alone depends on the order of tuples, and is refused. Sorted, it does not:
`sort_array(collect_list(v))` is one aggregate. So a join can nest: `sort_array(collect_list(named_struct('at', b.ts,
'price', b.price))) AS bid`.
"""

from __future__ import annotations

import difflib

from sqlglot import exp

from xmlstream.operators.expressions.dialect import READ_SPECIALLY, call_name
from xmlstream.operators.expressions.duration import ISO_DURATIONS
from xmlstream.operators.expressions.operations.python_functions import known_by

_SCALARS = (
    # arrays
    "array array_append array_compact array_contains array_distinct array_except array_insert array_intersect "
    "array_join array_max array_min array_position array_prepend array_remove array_repeat array_size array_union "
    "arrays_overlap arrays_zip cardinality element_at flatten get reverse sequence size slice sort_array "
    "try_element_at "
    # bits
    "bit_count bit_get getbit shiftleft shiftright shiftrightunsigned "
    # conditions
    "coalesce if ifnull nanvl nullif nullifzero nvl nvl2 zeroifnull "
    # conversions
    "bigint binary boolean date decimal double float int smallint string timestamp tinyint "
    # dates and times
    "add_months date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff "
    "datepart day dayname dayofmonth dayofweek dayofyear from_unixtime from_utc_timestamp hour last_day make_date "
    "make_dt_interval make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval minute "
    "month monthname months_between next_day quarter second timestamp_micros timestamp_millis timestamp_seconds "
    "timestampadd timestampdiff to_date to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp "
    "to_utc_timestamp trunc try_make_interval try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz "
    "try_to_date try_to_timestamp unix_date unix_micros unix_millis unix_seconds unix_timestamp weekday "
    "weekofyear year "
    # hashes
    "crc32 hash md5 sha sha1 sha2 xxhash64 "
    # JSON
    "from_json get_json_object json_array_length json_object_keys to_json "
    # maps and structures
    "map map_concat map_contains_key map_entries map_from_arrays map_from_entries map_keys map_values str_to_map "
    "named_struct "
    # mathematics
    "abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc degrees e exp "
    "expm1 factorial floor greatest hex hypot least ln log log10 log1p log2 mod negative pi pmod positive pow "
    "power radians rint round sec sign signum sin sinh sqrt tan tanh try_add try_divide try_mod try_multiply "
    "try_subtract unhex width_bucket "
    # predicates
    "equal_null isnan isnotnull isnull regexp_like "
    # strings
    "ascii base64 bit_length btrim char char_length character_length chr concat concat_ws contains decode elt "
    "encode endswith find_in_set format_number format_string initcap instr lcase left len length levenshtein "
    "locate lower lpad ltrim luhn_check mask octet_length overlay position printf quote regexp_count "
    "regexp_extract regexp_extract_all regexp_instr regexp_replace regexp_substr repeat replace right rpad rtrim "
    "sentences soundex space split split_part startswith substr substring substring_index to_binary to_char "
    "to_number to_varchar translate trim try_to_binary try_to_number ucase unbase64 upper "
    # URLs
    "parse_url try_parse_url try_url_decode url_decode url_encode "
    # XML
    "xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string "
)
SCALARS = frozenset(_SCALARS.split())
"""Scalar functions: they map values to a value."""

_AGGREGATES = (
    "approx_count_distinct avg bit_and bit_or bit_xor bool_and bool_or corr count count_if covar_pop covar_samp "
    "every kurtosis max max_by mean median min min_by percentile regr_avgx regr_avgy regr_count regr_intercept regr_r2 "
    "regr_slope regr_sxx regr_sxy regr_syy skewness std stddev stddev_pop stddev_samp sum try_avg try_sum var_pop "
    "var_samp variance"
)
AGGREGATES = frozenset(_AGGREGATES.split())
"""Aggregates that do not depend on the order of tuples."""

READS_THE_CLOCK = frozenset({"curdate", "current_date", "current_timestamp", "localtimestamp", "now"})
"""Functions that give the recorded time of the slice, where `xmlstream.sql.clauses.current_time` allows them."""

READS_THE_CLOCK_ALONE = frozenset({"unix_timestamp"})
"""Functions that give the current time if they have no argument."""

CUTS_TIME = frozenset({"session_window", "window", "window_time"})
"""Functions that cut time into windows, or read them; `xmlstream.sql.refused.supported` checks their places."""

_RANDOM = "rand randn random randstr shuffle uniform uuid monotonically_increasing_id aes_encrypt try_aes_encrypt"
_CLOCK = "current_time localtime"
_COLLECTIONS = "array_agg collect_list collect_set"
_CONCATENATIONS = "group_concat listagg string_agg"
_ORDERED = "approx_percentile histogram_numeric mode percentile_approx"
_RANKS = "dense_rank rank row_number"
_WINDOWS = "cume_dist lag lead nth_value ntile percent_rank"
_TIME_WINDOWS = "cumulate date_bin hop session time_bucket tumble"
TIME_WINDOWS = frozenset(_TIME_WINDOWS.split())
"""Functions of other engines that cut time into windows."""

WINDOW_HINT = (
    "write GROUP BY window(ts, '10 minutes'), with a slide as in window(ts, '10 minutes', '1 minute') where windows"
    " overlap; window.start and window.end are its ends; sessions are session_window(ts, '5 minutes')"
)
"""Hint for windows of other engines: Spark's windows, whose groups punctuations on the time close."""
ONE_FOR_ONE = (
    "for an array write FROM s LATERAL VIEW explode(tags) t AS tag; for nested XML let rowTag name the inner element,"
    " and read a value of the outer element by a path, as in OPTIONS (rowTag 'tag', 'path.id' '../@id')"
)
"""Hint to make several tuples of one."""

_GENERATORS = "explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack"
_LAMBDAS = (
    "aggregate array_sort exists filter forall map_filter map_zip_with reduce transform transform_keys "
    "transform_values zip_with"
)
_SESSION = (
    "current_catalog current_database current_path current_schema current_timezone current_user session_user user "
    "version input_file_block_length input_file_block_start spark_partition_id"
)
OF_DOCUMENT = "declare a column of the table with its path: file STRING, and the option path.file 'document()'"
"""Hint for the document of a tuple."""

_OUTSIDE = "java_method reflect try_reflect"
_ROLLUPS = "grouping grouping_id"

_WHICH = "which tuple that is depends on their order, which a merge of streams does not keep; write"
_ROW_AT_THE_END = (
    "for the whole row write SELECT … FROM s QUALIFY row_number() OVER (PARTITION BY day ORDER BY ts DESC) = 1"
)

_REASONS = {
    "struct": "named_struct('a', …) makes a structure",
    "any some": "use bool_or(…)",
    _RANDOM: "its value would change when a slice runs again after a crash",
    _CLOCK: "there is no type for a time without a day: write date_format(current_timestamp(), 'HH:mm:ss')",
    _COLLECTIONS: "the order of its elements depends on the order of tuples; write sort_array(collect_list(v))",
    _CONCATENATIONS: (
        "the order of its texts depends on the order of tuples; write array_join(sort_array(collect_list(v)), ', ')"
    ),
    _ORDERED: "its result depends on the order of tuples, which a merge of streams does not keep; write"
    " percentile(v, 0.5)",
    "last last_value": f"{_WHICH} max_by(v, ts), the value at the greatest ts; {_ROW_AT_THE_END}",
    "first first_value": f"{_WHICH} min_by(v, ts), the value at the least ts",
    "any_value": f"{_WHICH} max(v)",
    "arg_max argmax": f"write max_by(v, ts); {_ROW_AT_THE_END}",
    "arg_min argmin": "write min_by(v, ts)",
    _RANKS: "write it without arguments, followed by OVER (PARTITION BY … ORDER BY …)",
    _WINDOWS: "the supported functions that rank are row_number, rank and dense_rank",
    _TIME_WINDOWS: WINDOW_HINT,
    _GENERATORS: f"{ONE_FOR_ONE}; explode(arrays_zip(x, y)) t AS e explodes several arrays at once, as e.x and e.y",
    _LAMBDAS: "functions with a lambda (x -> …) are not supported",
    _SESSION: "its value depends on the session or the process that computes it",
    "input_file_name": OF_DOCUMENT,
    _OUTSIDE: "a query may call Spark's own functions only",
    "top": "write SELECT … ORDER BY … LIMIT 3",
    "split_index": "write split_part(s, '/', 4), which counts from 1, for split_index(s, '/', 3), which counts from 0",
    "datetime_trunc time_trunc": "write date_trunc('HOUR', ts)",
    "getdate sysdate systimestamp": "write current_timestamp()",
    "strftime time_format": "write date_format(ts, 'yyyy-MM-dd HH:mm')",
    "strptime": "write to_timestamp(text, 'yyyy-MM-dd HH:mm')",
    "json_extract json_query json_value": "write get_json_object(text, '$.a')",
    "len_trim": "write length(trim(text))",
    "proctime": "write current_timestamp() AS came in a SELECT FROM the source, the time at which a tuple came",
    _ROLLUPS: "GROUP BY with ROLLUP, CUBE or GROUPING SETS is not supported",
}

REFUSED = {name: reason for names, reason in _REASONS.items() for name in names.split()}
"""Functions of Spark or other engines that a query may not call, each with the reason."""


def is_of_sql(name: str) -> bool:
    """Whether SQL has a function of this name, supported or not."""
    known = SCALARS | AGGREGATES | CUTS_TIME | READS_THE_CLOCK | ISO_DURATIONS | REFUSED.keys()
    return name.lower() in known or name.upper() in READ_SPECIALLY


REGISTERED: set[str] = set()
"""The functions that users have registered with sessions of Spark, as far as texts call them; in lower case."""


_HINT = (
    "Spark's scalar functions are supported, and count, sum, min, max, avg and other aggregates; CREATE FUNCTION, or"
    " xs.function, makes a function of Python known"
)


def reason_to_refuse(name: str) -> tuple[str, str] | None:
    """The message and the hint if the function is refused; None if it is supported.

    >>> reason_to_refuse("MAX")
    >>> reason_to_refuse("rand")[0]
    'the function rand is not supported'
    >>> reason_to_refuse("maxx")
    ('there is no function maxx', 'did you mean max?')
    """
    known = name.lower()
    supported = SCALARS | AGGREGATES | CUTS_TIME | READS_THE_CLOCK | ISO_DURATIONS
    if known in supported or known in REGISTERED or known_by(known) is not None:
        return None
    if known in REFUSED:
        return f"the function {known} is not supported", REFUSED[known]
    if near := difflib.get_close_matches(known, supported, n=1, cutoff=0.8):
        return f"there is no function {known}", f"did you mean {near[0]}?"
    return f"the function {known} is not supported", _HINT


def reason_to_refuse_call(call: exp.Anonymous) -> tuple[str, str] | None:
    """The message and the hint if a call is refused; None if it is supported, or if OVER or LATERAL VIEW decides."""
    if isinstance(call.parent, exp.Window | exp.Lateral) or is_ordered_collection(call) or is_collected_in_order(call):
        return None
    return reason_to_refuse(call_name(call))


RANKS = frozenset({"row_number", "rank", "dense_rank"})
"""Functions that number the tuples of each group; a query selects the first tuples with them."""

BY_ANOTHER = frozenset({"max_by", "min_by"})
"""Aggregates of groups alone, not of rows: the value where another one is greatest or least."""

BY_PLACE = frozenset({"first", "first_value", "last", "last_value"})
"""Functions supported with OVER alone: they depend on the order of rows, which groups do not have."""


OF_ALL = frozenset({"ntile", "percent_rank", "cume_dist"})
"""Functions that need all rows of a group."""

_OTHERS = frozenset({"lag", "lead", "nth_value"})


def function_of(window: exp.Expr) -> str:
    """The name of the function before OVER, in lower case."""
    return call_name(window.this)


def looks_around(window: exp.Expr) -> bool:
    """Whether its name and its ORDER BY allow to compute it from rows around; the frame is checked elsewhere."""
    known = function_of(window) in (AGGREGATES | BY_PLACE | _OTHERS) - BY_ANOTHER
    return known and bool(window.args.get("order")) and not any(window.args.get(part) for part in ("alias", "first"))


COLLECTIONS = frozenset({"array_agg", "collect_list", "collect_set"})

_MOST_ARGUMENTS = {"sort_array": 2, "array_sort": 1}
"""Functions that sort an array, with the most arguments allowed: `array_sort`'s second one would be a function."""


def is_ordered_collection(node: exp.Expr | None) -> bool:
    """Whether the call sorts a collection of a group's values, which may have FILTER or DISTINCT."""
    given = [] if node is None else node.expressions
    return 0 < len(given) <= _MOST_ARGUMENTS.get(call_name(node), 0) and _is_collection(given[0])


def is_collected_in_order(node: exp.Expr | None) -> bool:
    """Whether the call collects a group's values within a call that sorts them."""
    parent = None if node is None or not _is_collection(node) else node.parent
    return is_ordered_collection(parent.parent if isinstance(parent, exp.Filter) else parent)


def _is_collection(node: exp.Expr) -> bool:
    call = node.this if isinstance(node, exp.Filter) else node
    return call_name(call) in COLLECTIONS and len(call.expressions) == 1


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node is an aggregate, with its FILTER, or a sorted collection."""
    call = node.this if isinstance(node, exp.Filter) else node
    return call_name(call) in AGGREGATES or is_ordered_collection(call)


def aggregates_in(*trees: exp.Expr) -> list[exp.Expr]:
    """The outermost aggregates in expressions, not those of their subqueries.

    >>> from xmlstream.operators.expressions.dialect import expression, render
    >>> [render(tree) for tree in aggregates_in(expression("1 + max(a) FILTER (WHERE min(b) > 1)"))]
    ['max(`a`) FILTER(WHERE min(`b`) > 1)']
    """
    found: list[exp.Expr] = []
    for tree in trees:
        if not isinstance(tree, exp.Query):
            found += [tree] if is_aggregate(tree) else aggregates_in(*tree.iter_expressions())
    return found
