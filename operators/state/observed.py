"""Observations of Spark: what it counts while it computes a DataFrame, waited for with patience, not for ever.

Spark tells an observation's result by an event, after the computation. Where the DataFrame was never computed, or the
event is lost on a machine with too much to do, nobody tells.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from punct_ns.errors import XmlStreamError

if TYPE_CHECKING:
    from pyspark.sql import Observation

PATIENCE_SECONDS = 120.0
"""How long an event may take that usually takes milliseconds."""


def metrics_of(observation: Observation, patience: float = PATIENCE_SECONDS) -> dict[str, Any]:
    """The metrics by their names; none where Spark saw that there would be no tuples.

    Raises:
        XmlStreamError: Spark does not tell.
    """
    # The wait is Java's; this ends it from another thread, and costs nothing where it need not.
    timer = threading.Timer(patience, _give_up, [observation])
    timer.daemon = True
    timer.start()
    try:
        return dict(observation.get)
    except Exception as error:
        if _GIVEN_UP not in str(error):
            # A plan that Spark folds to no row has nothing observed in it, and a row without columns has no schema.
            if observation._jo is not None and observation._jo.getRow().length() == 0:
                return {}
            raise
        hint = "the machine may have too much to do; a run with the same checkpoint does the slice again"
        raise XmlStreamError(f"Spark did not tell in {patience:.0f} s what it had counted", hint=hint) from None
    finally:
        timer.cancel()


_GIVEN_UP = "nobody tells what was observed"


def _give_up(observation: Any) -> None:
    jvm = observation._jvm
    observation._jo.setMetricsAndNotify(jvm.scala.util.Failure(jvm.java.util.concurrent.TimeoutException(_GIVEN_UP)))
