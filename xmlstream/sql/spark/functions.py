"""Functions of Spark that a query may call, by name: scalars, aggregates, functions before OVER, collections.

Every other function is refused, with a reason. A value must depend on its arguments alone, so that a slice that runs
again after a crash gives the same result; an aggregate must not depend on the order of tuples, which a merge does not
keep.

`collect_list` depends on the order of tuples, and is refused by itself. Sorted by its values it does not depend on it:
`sort_array(collect_list(v))` is one aggregate. So a join can nest: `sort_array(collect_list(named_struct('at', b.ts,
'price', b.price))) AS bid`.
"""

from __future__ import annotations

import difflib

from sqlglot import exp

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
"""Functions of values to a value."""

_AGGREGATES = (
    "approx_count_distinct avg bit_and bit_or bit_xor bool_and bool_or corr count count_if covar_pop covar_samp "
    "every kurtosis max mean median min percentile regr_avgx regr_avgy regr_count regr_intercept regr_r2 "
    "regr_slope regr_sxx regr_sxy regr_syy skewness std stddev stddev_pop stddev_samp sum try_avg try_sum var_pop "
    "var_samp variance"
)
AGGREGATES = frozenset(_AGGREGATES.split())
"""Functions of all tuples of a group, in whatever order they come."""

READS_THE_CLOCK = frozenset({"curdate", "current_date", "current_timestamp", "localtimestamp", "now"})
"""Functions of the time: the recorded time of the slice, where `xmlstream.sql.clauses.current_time` allows it."""

READS_THE_CLOCK_ALONE = frozenset({"unix_timestamp"})
"""Functions that without an argument mean the time at which they are computed."""

CUTS_TIME = frozenset({"session_window", "window", "window_time"})
"""Functions that cut time, and that of what they give; where they may stand, `xmlstream.sql.refused.refusals` says."""

_RANDOM = "rand randn random randstr shuffle uniform uuid monotonically_increasing_id aes_encrypt try_aes_encrypt"
_CLOCK = "current_time localtime"
_COLLECTIONS = "array_agg collect_list collect_set"
_CONCATENATIONS = "group_concat listagg string_agg"
_ORDERED = (
    "any_value approx_percentile first first_value histogram_numeric last "
    "last_value max_by min_by mode percentile_approx"
)
_RANKS = "dense_rank rank row_number"
_WINDOWS = "cume_dist lag lead nth_value ntile percent_rank"
_TIME_WINDOWS = "cumulate hop session time_bucket tumble"
TIME_WINDOWS = frozenset(_TIME_WINDOWS.split())
"""What cuts time into windows, in Spark and elsewhere."""

WINDOW_HINT = (
    "write GROUP BY window(ts, '10 minutes'), with a slide as in window(ts, '10 minutes', '1 minute') where windows"
    " overlap; window.start and window.end are its ends; sessions are session_window(ts, '5 minutes')"
)
"""What to write in place of windows of other engines, so that punctuations on the time close the groups."""
ONE_FOR_ONE = (
    "FROM s LATERAL VIEW explode(tags) t AS tag makes a tuple of each element of an array; of inner elements a source"
    " does, with rowTag, and gives them what is around by a path, such as 'path.id' '../@id'"
)
"""What to write where one tuple is to become several."""

_GENERATORS = "explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack"
_LAMBDAS = (
    "aggregate array_sort exists filter forall map_filter map_zip_with reduce transform transform_keys "
    "transform_values zip_with"
)
_SESSION = (
    "current_catalog current_database current_path current_schema current_timezone current_user session_user user "
    "version input_file_block_length input_file_block_start input_file_name spark_partition_id"
)
_OUTSIDE = "java_method reflect try_reflect"
_ROLLUPS = "grouping grouping_id"

_REASONS = {
    "struct": "named_struct('a', …) makes a structure",
    "any some": "use bool_or(…)",
    _RANDOM: "its value would be another when a slice is run again after a crash",
    _CLOCK: "a time without a day is no type here: date_format(current_timestamp(), 'HH:mm:ss') writes it",
    _COLLECTIONS: "its elements come in whatever order tuples do; sort_array(collect_list(v)) has an order of its own",
    _CONCATENATIONS: (
        "its texts come in whatever order tuples do; array_join(sort_array(collect_list(v)), ', ') has an order of its"
        " own"
    ),
    _ORDERED: "it depends on an order of tuples that a merge of streams does not keep; min and max do not",
    _RANKS: "it takes no arguments, and OVER (PARTITION BY … ORDER BY …) behind it",
    _WINDOWS: "of window functions row_number, rank and dense_rank are supported",
    _TIME_WINDOWS: WINDOW_HINT,
    _GENERATORS: f"{ONE_FOR_ONE}; explode(arrays_zip(x, y)) t AS e takes several arrays together, as e.x and e.y",
    _LAMBDAS: "functions of functions are not supported",
    _SESSION: "its value depends on where and by whom it is computed",
    _OUTSIDE: "a query calls Spark's own functions alone",
    "top": "write SELECT … ORDER BY … LIMIT 3",
    "split_index": "write split_part(s, '/', 4), which counts from 1, for split_index(s, '/', 3), which counts from 0",
    "proctime": "write current_timestamp() AS came in a SELECT FROM the source, the time at which a tuple came",
    _ROLLUPS: "GROUP BY with ROLLUP, CUBE or GROUPING SETS is not supported",
}

REFUSED = {name: reason for names, reason in _REASONS.items() for name in names.split()}
"""Functions that Spark or another engine has and a query may not call, each with the reason."""


_HINT = "Spark's functions of values to a value are, and count, sum, min, max, avg and other aggregates"


def reason_to_refuse(name: str) -> tuple[str, str] | None:
    """Why calls of a function are refused, what and a hint; None where they are not.

    >>> reason_to_refuse("MAX")
    >>> reason_to_refuse("rand")[0]
    'the function rand is not supported'
    >>> reason_to_refuse("maxx")
    ('there is no function maxx', 'did you mean max?')
    """
    known = name.lower()
    if known in SCALARS | AGGREGATES | CUTS_TIME | READS_THE_CLOCK:
        return None
    if known in REFUSED:
        return f"the function {known} is not supported", REFUSED[known]
    near = difflib.get_close_matches(known, SCALARS | AGGREGATES | CUTS_TIME | READS_THE_CLOCK, n=1, cutoff=0.8)
    if near:
        return f"there is no function {known}", f"did you mean {near[0]}?"
    return f"the function {known} is not supported", _HINT


def reason_to_refuse_call(call: exp.Anonymous) -> tuple[str, str] | None:
    """Why a call is refused where it stands, what and a hint; None where it is not, or where OVER or VIEW decides."""
    if isinstance(call.parent, exp.Window | exp.Lateral) or is_ordered_collection(call) or is_collected_in_order(call):
        return None
    return reason_to_refuse(str(call.this))


RANKS = frozenset({"row_number", "rank", "dense_rank"})
"""Functions that number the tuples of each group, by which a query selects the first ones."""

BY_PLACE = frozenset({"first", "first_value", "last", "last_value"})
"""Functions that the order of rows decides, as it does not for groups."""


OF_ALL = frozenset({"ntile", "percent_rank", "cume_dist"})
"""Functions that need all of a group."""

_OTHERS = frozenset({"lag", "lead", "nth_value"})


def function_of(window: exp.Expr) -> str:
    """The name of the function before OVER, in lower case."""
    return str(window.this.this).lower() if isinstance(window.this, exp.Anonymous) else ""


def looks_around(window: exp.Expr) -> bool:
    """Whether it is a function over rows that can be answered from those around, as far as its name and order tell."""
    known = function_of(window) in AGGREGATES | BY_PLACE | _OTHERS
    return known and bool(window.args.get("order")) and not any(window.args.get(part) for part in ("alias", "first"))


COLLECTIONS = frozenset({"array_agg", "collect_list", "collect_set"})

_MOST_ARGUMENTS = {"sort_array": 2, "array_sort": 1}
"""What sorts an array by its values, and how many arguments it may have: a second one of `array_sort` is a function."""


def is_ordered_collection(node: exp.Expr | None) -> bool:
    """Whether it sorts all values of a group, which may be filtered or distinct."""
    if not isinstance(node, exp.Anonymous) or not node.expressions:
        return False
    is_sorted = len(node.expressions) <= _MOST_ARGUMENTS.get(str(node.this).lower(), 0)
    return is_sorted and _is_collection(node.expressions[0])


def is_collected_in_order(node: exp.Expr | None) -> bool:
    """Whether it collects all values of a group for what sorts them."""
    if node is None or not _is_collection(node):
        return False
    parent = node.parent
    return is_ordered_collection(parent.parent if isinstance(parent, exp.Filter) else parent)


def _is_collection(node: exp.Expr) -> bool:
    call = node.this if isinstance(node, exp.Filter) else node
    is_known = isinstance(call, exp.Anonymous) and str(call.this).lower() in COLLECTIONS
    return is_known and len(call.expressions) == 1


def is_aggregate(node: exp.Expr) -> bool:
    """Whether it is an aggregate, its FILTER included, or all values of a group in order."""
    call = node.this if isinstance(node, exp.Filter) else node
    return isinstance(call, exp.Anonymous) and (str(call.this).lower() in AGGREGATES or is_ordered_collection(call))


def aggregates_in(*trees: exp.Expr) -> list[exp.Expr]:
    """The aggregates of expressions, without those that are within another.

    >>> from operators.expressions.dialect import expression, render
    >>> [render(tree) for tree in aggregates_in(expression("1 + max(a) FILTER (WHERE min(b) > 1)"))]
    ['max(`a`) FILTER(WHERE min(`b`) > 1)']
    """
    found: list[exp.Expr] = []
    for tree in trees:
        found += [tree] if is_aggregate(tree) else aggregates_in(*tree.iter_expressions())
    return found
