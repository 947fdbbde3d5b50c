"""Functions of Spark that a query may call, by name: scalars, aggregates, functions before OVER, collections.

Every other function is refused with a reason. A scalar must depend on its arguments alone, so that a slice that runs
again after a crash gives the same result; an aggregate must not depend on the order of tuples, which a merge does not
keep.

`collect_list` alone depends on the order of tuples, and is refused. Sorted, it does not:
`sort_array(collect_list(v))` is one aggregate. So a join can nest: `sort_array(collect_list(named_struct('at', b.ts,
'price', b.price))) AS bid`.
"""

from __future__ import annotations

from sqlglot import exp

from xmlstream.operators.expressions.dialect import READ_SPECIALLY, call_name
from xmlstream.operators.expressions.duration import ISO_DURATIONS
from xmlstream.operators.expressions.operations.python_functions import known_by
from xmlstream.punct_ns.errors import nearest

_SCALARS = (
    # arrays
    "array:0+ array_append:2 array_compact array_contains:2 array_distinct array_except:2 array_insert:3 "
    "array_intersect:2 array_join:2-3 array_max array_min array_position:2 array_prepend:2 array_remove:2 "
    "array_repeat:2 array_size array_union:2 arrays_overlap:2 arrays_zip:0+ cardinality element_at:2 flatten get:2 "
    "reverse sequence:2-3 size slice:3 sort_array:1-2 try_element_at:2 "
    # bits
    "bit_count bit_get:2 getbit:2 shiftleft:2 shiftright:2 shiftrightunsigned:2 "
    # conditions
    "coalesce:1+ if:3 ifnull:2 nanvl:2 nullif:2 nullifzero nvl:2 nvl2:3 zeroifnull "
    # conversions
    "bigint binary boolean date decimal double float int smallint string timestamp tinyint "
    # dates and times
    "add_months:2 date_add:2 date_diff:2 date_format:2 date_from_unix_date date_part:2 date_sub:2 date_trunc:2 "
    "dateadd:2 datediff:2 datepart:2 day dayname dayofmonth dayofweek dayofyear from_unixtime:1-2 "
    "from_utc_timestamp:2 hour last_day make_date:3 make_dt_interval:0-4 make_interval:0-7 make_timestamp:1-7 "
    "make_timestamp_ltz:2-7 make_timestamp_ntz:2-6 make_ym_interval:0-2 minute month monthname months_between:2-3 "
    "next_day:2 quarter second timestamp_micros timestamp_millis timestamp_seconds timestampadd:3 timestampdiff:3 "
    "to_date:1-2 to_timestamp:1-2 to_timestamp_ltz:1-2 to_timestamp_ntz:1-2 to_unix_timestamp:1-2 to_utc_timestamp:2 "
    "trunc:2 try_make_interval:1-7 try_make_timestamp:1-7 try_make_timestamp_ltz:2-7 try_make_timestamp_ntz:2-6 "
    "try_to_date:1-2 try_to_timestamp:1-2 unix_date unix_micros unix_millis unix_seconds unix_timestamp:0-2 weekday "
    "weekofyear year "
    # hashes
    "crc32 hash:1+ md5 sha sha1 sha2:2 xxhash64:1+ "
    # JSON
    "from_json:2-3 get_json_object:2 json_array_length json_object_keys to_json:1-2 "
    # maps and structures
    "map:0+ map_concat:0+ map_contains_key:2 map_entries map_from_arrays:2 map_from_entries map_keys map_values "
    "str_to_map:1-3 named_struct:0+ "
    # mathematics
    "abs acos acosh asin asinh atan atan2:2 atanh bin bround:1-2 cbrt ceil:1-2 ceiling:1-2 conv:3 cos cosh cot csc "
    "degrees e:0 exp expm1 factorial floor:1-2 greatest:2+ hex hypot:2 least:2+ ln log:1-2 log10 log1p log2 mod:2 "
    "negative pi:0 pmod:2 positive pow:2 power:2 radians rint round:1-2 sec sign signum sin sinh sqrt tan tanh "
    "try_add:2 try_divide:2 try_mod:2 try_multiply:2 try_subtract:2 unhex width_bucket:4 "
    # predicates
    "equal_null:2 isnan isnotnull isnull regexp:2 regexp_like:2 rlike:2 "
    # strings
    "ascii base64 bit_length btrim:1-2 char char_length character_length chr concat:0+ concat_ws:1+ contains:2 "
    "decode:2+ elt:2+ encode:2 endswith:2 find_in_set:2 format_number:2 format_string:1+ initcap instr:2-4 lcase "
    "left:2 len length levenshtein:2-3 locate:2-3 lower lpad:2-3 ltrim:1-2 luhn_check mask:1-5 octet_length "
    "overlay:3-4 position:2-3 printf:1+ quote regexp_count:2 regexp_extract:2-3 regexp_extract_all:2-3 "
    "regexp_instr:2-3 regexp_replace:3-4 regexp_substr:2 repeat:2 replace:2-3 right:2 rpad:2-3 rtrim:1-2 "
    "sentences:1-3 soundex space split:2-3 split_part:3 startswith:2 substr:2-3 substring:2-3 substring_index:3 "
    "to_binary:1-2 to_char:2 to_number:2 to_varchar:2 translate:3 trim:1-2 try_to_binary:1-2 try_to_number:2 ucase "
    "unbase64 upper "
    # URLs
    "parse_url:2-3 try_parse_url:2-3 try_url_decode url_decode url_encode "
    # XML
    "xpath:2 xpath_boolean:2 xpath_double:2 xpath_float:2 xpath_int:2 xpath_long:2 xpath_number:2 xpath_short:2 "
    "xpath_string:2 "
)


def _numbers(table: str) -> dict[str, tuple[int, int]]:
    """The least and the greatest number of arguments by function: 1 if no number is written."""
    found = {}
    for name, _, numbers in (word.partition(":") for word in table.split()):
        least, _, most = (numbers or "1").partition("-")
        found[name] = int(least.rstrip("+")), 255 if "+" in least else int(most or least)
    return found


SCALARS = frozenset(_numbers(_SCALARS))
"""Scalar functions: they map values to a value."""

_AGGREGATES = (
    "approx_count_distinct:1-2 avg bit_and bit_or bit_xor bool_and bool_or corr:2 count:1+ count_if covar_pop:2 "
    "covar_samp:2 every kurtosis max max_by:2-3 mean median min min_by:2-3 percentile:2-3 regr_avgx:2 regr_avgy:2 "
    "regr_count:2 regr_intercept:2 regr_r2:2 regr_slope:2 regr_sxx:2 regr_sxy:2 regr_syy:2 skewness std stddev "
    "stddev_pop stddev_samp sum try_avg try_sum var_pop var_samp variance "
)
AGGREGATES = frozenset(_numbers(_AGGREGATES))
"""Aggregates that do not depend on the order of tuples."""

READS_THE_CLOCK = frozenset({"curdate", "current_date", "current_timestamp", "localtimestamp", "now"})
"""Functions that give the recorded time of the slice, where `xmlstream.sql.clauses.current_time` allows them."""

READS_THE_CLOCK_ALONE = frozenset({"unix_timestamp"})
"""Functions that give the current time if they have no argument."""

CUTS_TIME = frozenset({"session_window", "window", "window_time"})
"""Functions that cut time into windows, or read them; `xmlstream.sql.refused.supported` checks their places."""

_RANDOM = (
    "rand randn random randstr shuffle uniform uuid gen_random_uuid generate_uuid newid"
    " monotonically_increasing_id aes_encrypt try_aes_encrypt"
)
_CLOCK = "current_time localtime time"
_COLLECTIONS = "array_agg collect_list collect_set list"
_CONCATENATIONS = "group_concat listagg string_agg"
_ORDERED = (
    "approx_percentile approx_quantiles histogram_numeric mode percentile_approx percentile_cont percentile_disc"
    " quantile"
)
_RANKS = "dense_rank rank row_number"
_WINDOWS = "cume_dist lag lead nth_value ntile percent_rank"
_TIME_WINDOWS = "cumulate date_bin hop session time_bucket time_slice tumble"
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

_WITHIN_AN_ITEM = (
    "write FROM s LATERAL VIEW explode(tags) t AS tag, and tag in its place, as in upper(tag); alone, explode(tags) may"
    " be an item of SELECT"
)

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
GROUPING = frozenset({"grouping", "grouping_id"})
"""Functions that tell which keys a row of GROUPING SETS, CUBE or ROLLUP is grouped by."""

OF_SETS = (exp.GroupingSets, exp.Cube, exp.Rollup)
"""Nodes of GROUP BY that mean several sets of keys."""

_WHICH = "which tuple that is depends on their order, which a merge of streams does not keep; write"
_ROW_AT_THE_END = (
    "for the whole row write SELECT … FROM s QUALIFY row_number() OVER (PARTITION BY day ORDER BY ts DESC) = 1"
)

_MOVED = "write ts + INTERVAL 1 HOUR"
_APART = "write timestampdiff(MICROSECOND, t1, t2) DIV 60000000 for the minutes from t1 to t2"
_REASONS = {
    "row object_construct json_object json_build_object": "named_struct('a', a) makes a structure",
    "any some": "use bool_or(v > 1)",
    _RANDOM: "its value would change when a slice runs again after a crash",
    _CLOCK: "there is no type for a time without a day: write date_format(ts, 'HH:mm:ss')",
    _COLLECTIONS: "the order of its elements depends on the order of tuples; write sort_array(collect_list(v))",
    _CONCATENATIONS: (
        "the order of its texts depends on the order of tuples; write sort_array(collect_list(text)), on Spark"
        " array_join(sort_array(collect_list(text)), ', ')"
    ),
    _ORDERED: "its result depends on the order of tuples, which a merge of streams does not keep; write"
    " median(v), on Spark percentile(v, 0.5)",
    "last last_value latest_by_offset": f"{_WHICH} max_by(v, ts), the value at the greatest ts; {_ROW_AT_THE_END}",
    "first first_value earliest_by_offset": f"{_WHICH} min_by(v, ts), the value at the least ts",
    "any_value": f"{_WHICH} max(v)",
    "arg_max argmax": f"write max_by(v, ts); {_ROW_AT_THE_END}",
    "arg_min argmin": "write min_by(v, ts)",
    _RANKS: "write it without arguments, followed by OVER (PARTITION BY … ORDER BY …)",
    _WINDOWS: "the supported functions that rank are row_number, rank and dense_rank",
    _TIME_WINDOWS: WINDOW_HINT,
    _GENERATORS: f"{ONE_FOR_ONE}; explode(arrays_zip(tags, prices)) t AS e explodes two at once, as e.tags",
    _LAMBDAS: "functions with a lambda (x -> …) are not supported",
    _SESSION: "its value depends on the session or the process that computes it",
    "input_file_name": OF_DOCUMENT,
    _OUTSIDE: "a query may call Spark's own functions only",
    "rownum top topk": "write SELECT … ORDER BY … LIMIT 3",
    "split_index": "write split_part(text, '/', 4), which counts from 1, for the index 3, which counts from 0",
    "datetime_trunc time_trunc timestamp_trunc datetrunc": "write date_trunc('HOUR', ts)",
    "getdate sysdate systimestamp": "write current_timestamp()",
    "format format_date format_timestamp strftime time_format timestamptostring": (
        "write date_format(ts, 'yyyy-MM-dd HH:mm')"
    ),
    "parse_date parse_timestamp str_to_date strptime": "write to_timestamp(text, 'yyyy-MM-dd HH:mm')",
    "json_extract json_query json_value": "on Spark write get_json_object(text, '$.a')",
    "convert": "write CAST(v AS STRING), or date_format(ts, 'yyyy-MM-dd HH:mm')",
    "safe_cast try_convert": "write TRY_CAST(text AS INT), which is null for other texts",
    "charindex strpos": "write instr(text, 'a')",
    "datetime_add numtodsinterval timestamp_add timestamp_sub": _MOVED,
    "age timestamp_diff": _APART,
    "eomonth": "write last_day(CAST(ts AS DATE))",
    "epoch epoch_ms": "write unix_millis(ts), or unix_seconds(ts)",
    "generate_series": "write sequence(1, 3), an array, beside the columns of a stream",
    "nunique": "write count(DISTINCT v)",
    "array_length list_length": "write size(tags)",
    "list_contains list_has": "write array_contains(tags, 'a')",
    "div": "write a DIV b",
    "xor": "write a ^ b",
    "typeof": "xmlstream explain shows the types of all columns",
    "regexp_match regexp_matches": "write regexp_extract(text, '[0-9]+', 0)",
    "string_to_array": "write split(text, ',')",
    "unnest": ONE_FOR_ONE,
    "read_csv read_json read_parquet read_xml": "declare it: CREATE TABLE t (…) USING …, and write FROM t",
    "safe_divide": "write a / nullif(b, 0)",
    "len_trim": "write length(trim(text))",
    "rowtime": "write the attribute that has the time",
    "proctime": "write current_timestamp() AS came in a SELECT FROM the source, the time at which a tuple came",
    " ".join(GROUPING): "it belongs to GROUP BY with ROLLUP, CUBE or GROUPING SETS, in SELECT, HAVING and ORDER BY",
}

REFUSED = {name: reason for names, reason in _REASONS.items() for name in names.split()}
"""Functions of Spark or other engines that a query may not call, each with the reason."""


_ARGUMENTS = _numbers(_SCALARS) | _numbers(_AGGREGATES)
_OTHERWISE = {
    "isnull": "write coalesce(v, 0) for a value in the place of null",
    "trunc": "write date_trunc('DAY', ts), or CAST(x AS BIGINT) for a number",
    "to_number try_to_number": "write CAST(text AS DECIMAL(10, 2))",
    "to_char to_varchar": "write CAST(v AS STRING), or date_format(ts, 'yyyy-MM-dd HH:mm')",
    "date_add date_sub dateadd": _MOVED,
    "date_diff datediff": _APART,
    "max": "write greatest(a, b)",
    "min": "write least(a, b)",
}
"""What to write for what other engines do with other arguments of functions of Spark."""

_BY_UNIT = ("date_add", "date_diff", "dateadd", "datediff")
"""Functions that have another form with a unit, as in dateadd(HOUR, 1, ts)."""


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
    if near := nearest(known, supported, 0.8):
        return f"there is no function {known}", f"did you mean {near}?"
    return f"the function {known} is not supported", _HINT


def reason_to_refuse_call(call: exp.Anonymous) -> tuple[str, str | None] | None:
    """The message and the hint if a call is refused; None if it is supported, or if OVER or LATERAL VIEW decides."""
    if isinstance(call.parent, exp.Window | exp.Lateral) or is_ordered_collection(call) or is_collected_in_order(call):
        return None
    name, number = call_name(call), len(call.expressions)
    if _called_with_groups(call) is not None or (name in GROUPING and _is_of_sets(call)) or is_exploded(call):
        return None
    if name in ("explode", "explode_outer", "unnest"):
        return f"{name} within an expression is not supported", _WITHIN_AN_ITEM
    if (refused := reason_to_refuse(name)) is not None or known_by(name) is not None or name == "count":
        return refused
    least, most = _ARGUMENTS.get(name, (0, 255))
    has_unit = name in _BY_UNIT and number == 3 and isinstance(call.expressions[0], exp.Var)
    moves = name in ("date_add", "date_sub", "dateadd") and any(isinstance(e, exp.Interval) for e in call.expressions)
    if has_unit or (least <= number <= most and not moves):
        return None
    hint = next((hint for names, hint in _OTHERWISE.items() if name in names.split()), None)
    if moves:
        return f"{name} takes a day and a number of days", hint
    numbers = f"{least}" if least == most else f"at least {least}" if most == 255 else f"{least} to {most}"
    return f"{name} takes {numbers} argument{'s' * (numbers != '1')}, not {number}", hint


def call_of_groups(select: exp.Select) -> exp.Anonymous | None:
    """The call of a function of groups, with the keys, that is the only item of a SELECT; None if there is none."""
    return _called_with_groups(select.expressions[0]) if len(select.expressions) == 1 else None


def _called_with_groups(item: exp.Expr) -> exp.Anonymous | None:
    """The call within `inline(…)` that stands for a function of groups (`xmlstream.sql.clauses.group_functions`)."""
    (call,) = item.expressions if call_name(item) == "inline" and len(item.expressions) == 1 else (None,)
    function = known_by(call_name(call))
    return call if function is not None and function.is_of_groups else None


EXPLODES = ("explode", "explode_outer")
"""Functions that make rows of an array's elements."""


def is_exploded(call: exp.Expr) -> bool:
    """Whether the node is explode of an array as an item of a SELECT."""
    item = call.parent if isinstance(call.parent, exp.Alias) else call
    is_item = isinstance(item.parent, exp.Select) and item.arg_key == "expressions"
    return is_item and call_name(call) in EXPLODES and len(call.expressions) == 1


def _is_of_sets(call: exp.Expr) -> bool:
    """Whether the call is in a SELECT that groups by several sets of keys."""
    select = call.find_ancestor(exp.Query)
    group = None if select is None else select.args.get("group")
    return group is not None and group.find(*OF_SETS) is not None


RANKS = frozenset({"row_number", "rank", "dense_rank"})
"""Functions that number the tuples of each group; a query selects the first tuples with them."""

BY_ANOTHER = frozenset({"max_by", "min_by"})
"""Aggregates of groups alone, not of rows: the value where another one is greatest or least."""

BY_PLACE = frozenset({"first", "first_value", "last", "last_value"})
"""Functions supported with OVER alone: they depend on the order of rows, which groups do not have."""


OF_ALL = frozenset({"ntile", "percent_rank", "cume_dist"})
"""Functions that look at all rows of a group."""

IN_ORDER = frozenset({"lag", "lead", "nth_value"}) | BY_PLACE | OF_ALL | RANKS
"""Functions before OVER that need ORDER BY."""


def function_of(window: exp.Expr) -> str:
    """The name of the function before OVER, in lower case."""
    return call_name(window.this)


def looks_around(window: exp.Expr) -> bool:
    """Whether its name and its ORDER BY allow to compute it from rows around; the frame is checked elsewhere."""
    name, is_ordered = function_of(window), bool(window.args.get("order"))
    known = name in ((AGGREGATES | IN_ORDER) - RANKS - BY_ANOTHER if is_ordered else AGGREGATES - BY_ANOTHER)
    return known and not any(window.args.get(part) for part in ("alias", "first"))


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
