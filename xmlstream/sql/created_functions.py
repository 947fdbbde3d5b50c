"""Python functions that queries may call: `@xs.function("DOUBLE")`, and CREATE FUNCTION in a file of SQL.

    CREATE FUNCTION fahr AS 'conversions:fahrenheit' RETURNS DOUBLE MONOTONE;

MONOTONE says that its values never fall as the argument rises, FALLING that they never rise, INJECTIVE that different
arguments have different values. Then punctuations pass through it; what comes out is checked against that. A function
must give the same result for the same arguments whenever it is called, as after a crash.

    CREATE FUNCTION slope AS 'prices:slope' RETURNS TABLE (auction BIGINT, slope DOUBLE);

A function that returns a table is one of whole groups, `FROM slope(TABLE(bid) PARTITION BY auction)`; in its place a
class may be named, an accumulator.

A module is looked for beside the file of SQL, as if Python ran that, then where Python finds modules.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from xmlstream.operators.expressions.dialect import as_read, call_name, offset, parsed, type_text
from xmlstream.operators.expressions.operations.python_functions import OF_PROGRAM, PythonFunction, declared_function
from xmlstream.punct_ns.errors import QueryError, did_you_mean
from xmlstream.session.engines import is_in_process
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.functions import REGISTERED, is_of_sql

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

F = TypeVar("F", bound=Callable[..., Any])


def function(
    returns: str, *, name: str | None = None, monotone: bool = False, falling: bool = False, injective: bool = False
) -> Callable[[F], F]:
    """Makes a function of Python usable in the queries of a program: `q.select("fahr(temp) AS f")`.

    It is called once for each row with values of Python, `None` for null; or with Arrow's columns if its parameters are
    annotated with `pyarrow.Array`. It must give the same result for the same arguments whenever it is called. A later
    function of this name takes its place in queries that are written then.

    One that returns "TABLE (a INT, …)" is called once for each group of a table, `FROM f(TABLE(t) PARTITION BY k)`, as
    by `group_by("k").apply(f, "a INT, …")`.

    Args:
        returns: The type of its results in SQL, such as "DOUBLE".
        name: Its name in queries; by default its own.
        monotone: Its values never fall as its argument rises, so that punctuations pass through it.
        falling: Its values never rise as its argument rises.
        injective: Different arguments have different values.

    Returns:
        A decorator, which returns the function itself.

    Raises:
        QueryError: It is no function of one row, its type is not supported, or SQL has a function of this name.
    """
    if not isinstance(returns, str):
        raise QueryError("xs.function needs the type of the results", hint='write @xs.function("DOUBLE")')

    def made(call: F) -> F:
        called = str(name or getattr(call, "__name__", ""))
        found = declared_function(call, called, returns, monotone=monotone, falling=falling, injective=injective)
        if (what := _taken(called)) is not None:
            raise QueryError(what, hint='give another name: @xs.function("…", name="…")')
        OF_PROGRAM[found.name] = found
        return call

    return made


def _taken(name: str) -> str | None:
    """What is wrong with a name of a function; None if SQL has no such function, and reads it as a name."""
    if is_of_sql(name):
        return f"{name} is a function of SQL"
    return None if call_name(parsed(f"{name}(x)")) == name.lower() else f"{name} is a word of SQL"


def note_registered(session: Session, text: str) -> None:
    """Notes the functions of a text that the user has registered with the session, by `spark.udf.register`."""
    classic: Any = session
    if is_in_process(session) or not hasattr(session, "_jsparkSession"):
        return
    catalogue, java = classic._jsparkSession.sessionState().catalog(), classic._jvm
    for name in {found.lower() for found in _CALLS.findall(text)} - REGISTERED - _KEYWORDS:
        unknown = not is_of_sql(name) and name not in OF_PROGRAM
        if unknown and catalogue.isTemporaryFunction(java.org.apache.spark.sql.catalyst.FunctionIdentifier(name)):
            REGISTERED.add(name)


_CALLS = re.compile(r"\b([^\W\d]\w*)\s*\(")
_KEYWORDS = frozenset({"and", "as", "by", "else", "from", "in", "not", "on", "or", "over", "then", "using", "when"})
"""Words of SQL that a bracket may follow."""


_WORDS = ("MONOTONE", "FALLING", "INJECTIVE")
_FORM = (
    "CREATE FUNCTION fahr AS 'module:name' RETURNS DOUBLE, perhaps followed by MONOTONE, FALLING or INJECTIVE; or"
    " RETURNS TABLE (a INT, b DOUBLE) for a function of groups, or an accumulator"
)


def declaration_words(run: list[Token]) -> list[Token]:
    """The words at the end of CREATE FUNCTION that declare what its values do, which no SQL parser reads."""
    count = next((i for i, token in enumerate(reversed(run)) if token.text.upper() not in _WORDS), 0)
    return run[len(run) - count :]


def created(tree: exp.Expr, words: list[Token], text: QueryText) -> PythonFunction:
    """The function that a CREATE FUNCTION declares, from its module.

    Raises:
        QueryError: The statement has another form, or its module or function cannot be had.
    """
    returns = _returned(tree, text)
    literal, table = tree.expression, tree.this
    name, given = table.name, {word.text.lower(): True for word in words}
    if (what := _taken(name)) is not None:
        raise text.error(what, table, "give the function another name")
    call = _loaded(literal, text)
    known = next((each for each in OF_PROGRAM.values() if each.call is call), None)
    if returns is None and known is None:
        raise text.error(f"the function {name} has no type", table, f"write {_FORM}")
    try:
        if returns is None and known is not None:
            returns = known.type.name
            given = given or dict.fromkeys((known.declared or "").replace("rising", "monotone").split(), True)
        return declared_function(call, name, returns or "", **given)
    except QueryError as error:
        raise text.error(error.what, table, error.hint) from None


def _returned(tree: exp.Expr, text: QueryText) -> str | None:
    """The type that a CREATE FUNCTION of the form that is supported declares; None if it leaves it out."""
    properties = tree.args["properties"].expressions if tree.args.get("properties") else ()
    returns = [part for part in properties if isinstance(part, exp.ReturnsProperty)]
    others = [part for part in properties if not isinstance(part, exp.ReturnsProperty | exp.TemporaryProperty)]
    literal = tree.expression
    is_plain = isinstance(tree.this, exp.Table) and isinstance(literal, exp.Literal) and literal.is_string
    if not is_plain or others or tree.args.get("exists"):
        raise text.error("this CREATE FUNCTION is not supported", tree, f"write {_FORM}")
    if not returns:
        return None
    if isinstance(columns := returns[0].this, exp.Schema):
        return f"TABLE ({', '.join(as_read(column) for column in columns.expressions)})"
    if not isinstance(returns[0].this, exp.DataType):
        raise text.error("what this function returns is not supported", tree, f"write {_FORM}")
    return type_text(returns[0].this)


def _loaded(literal: exp.Expr, text: QueryText) -> Any:
    """The object that 'module:name' names."""
    module, _, name = literal.name.partition(":")
    if not module or not name:
        raise text.error(f"'{literal.name}' names no function of a module", literal, f"write {_FORM}")
    source = text.place(offset(literal) or 0)[0]
    directory = str(Path(source).resolve().parent) if source and Path(source).is_file() else None
    if directory is not None:
        sys.path.insert(0, directory)
    try:
        found: Any = import_module(module)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]:
            hint = "it is looked for beside the file of SQL, and where Python finds modules"
            raise text.error(f"there is no module {module}", literal, hint) from None
        what = f"the module {module} cannot be imported: {type(error).__name__}: {error}"
        raise text.error(what, literal) from error
    finally:
        if directory is not None:
            sys.path.remove(directory)
            if directory not in sys.path:
                sys.path.append(directory)  # for what it imports later
    for part in name.split("."):
        if not hasattr(found, part):
            raise text.error(f"{module} has no {name}", literal, did_you_mean(part, dir(found)) or None)
        found = getattr(found, part)
    return found


def require_arguments(tree: exp.Expr, function: PythonFunction, text: QueryText) -> None:
    """Checks the number of a call's arguments, and that it is a call of one row.

    Raises:
        QueryError: The function does not take so many.
    """
    if function.is_of_groups:
        hint = f"write FROM {function.name}(TABLE(t) PARTITION BY k)"
        raise text.error(f"{function.name} is a function of groups, which stands in FROM", tree, hint)
    wrong = function.wrong_number(len(tree.expressions))
    if wrong is not None:
        raise text.error(wrong, tree)
    outer = tree.find_ancestor(exp.Join, exp.Query)
    if isinstance(outer, exp.Join) and (outer.args.get("side") or outer.args.get("kind") in ("SEMI", "ANTI", "ASOF")):
        hint = f"compute it in a subquery: FROM (SELECT *, {function.name}(…) AS x FROM …)"
        raise text.error(f"{call_name(tree)} is not supported in the ON clause of this join", tree, hint)
