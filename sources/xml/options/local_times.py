"""Times without a zone as moments: in the zone of the option `timeZone`, by the rule of Spark's source.

A local time that occurs twice is the first; one that never occurs is as much later as clocks are set forward.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.temporal_type import TimestampType
from xmlstream.punct_ns.time_zones import local_ends, moment_text, times_in_utc

if TYPE_CHECKING:
    import pyarrow as pa

    from xmlstream.punct_ns.sql_type import SqlType

_Longs = npt.NDArray[np.int64]

_SECOND = 1_000_000
_LATEST = 253_402_300_800 * _SECOND
"""The microsecond in which the year 10000 begins."""


@dataclass(frozen=True, slots=True)
class LocalTimes:
    """Reads times without a zone in one zone."""

    zone: str

    @staticmethod
    def of(type_: SqlType, zone: str) -> LocalTimes | None:
        """The reading of a type's values in a zone; None if a time without a zone is what it is, or in UTC."""
        return LocalTimes(zone) if zone != "UTC" and type_ == TimestampType(zoned=True) else None

    def text(self, text: str) -> str:
        """A text with its moment's time, if it is a time without a zone; ValueError beyond the years 1 to 9999."""
        return moment_text(text, self.zone)

    def of_pattern(self, pattern: str) -> str:
        """A pattern's text with the moments' times; ValueError as in `text`."""
        return times_in_utc(pattern, self.zone)

    def moments(self, local: Any) -> pa.Array[Any] | None:
        """The moments of local times, both in microseconds; None if one is beyond the year 9999.

        >>> import pyarrow as pa
        >>> times = pa.array(["2026-10-25T02:30:00", None, "2026-10-25T03:00:00"]).cast(pa.timestamp("us"))
        >>> [str(moment) for moment in LocalTimes("Europe/Berlin").moments(times)]
        ['2026-10-25 00:30:00', 'None', '2026-10-25 02:00:00']
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        longs: Any = local.cast(pa.int64())
        low, high = (longs_.as_py() for longs_ in pc.min_max(longs).values())
        if low is None:
            return local  # type: ignore[no-any-return]
        missing = longs.is_null().to_numpy(zero_copy_only=False) if longs.null_count else None
        found = self._moments(pc.fill_null(longs, low).to_numpy(), low, high)
        if found.max() >= _LATEST:
            return None
        return pa.array(found, pa.int64(), mask=missing).cast(local.type)

    def _moments(self, local: _Longs, low: int, high: int) -> _Longs:
        first, last = (
            int(np.datetime64(micros, "us").astype("datetime64[Y]").astype(int)) + 1970 for micros in (low, high)
        )
        if last - first > _FEW_YEARS:  # one far year, such as 9999, is no reason to look for the changes of all between
            years = local.astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64)
            found = np.empty_like(local)
            for year in np.unique(years).tolist():
                mine = years == year
                found[mine] = self._moments(local[mine], *(int(end) for end in (local[mine].min(), local[mine].max())))
            return found
        ends, offsets = local_ends(self.zone, max(first - 1, 1), min(last + 1, 9999))
        before, after = (bisect_right(ends, micros // _SECOND) for micros in (low, high))
        if before == after:
            return local - offsets[before] * _SECOND
        places = np.searchsorted(np.array(ends) * _SECOND, local, side="right")
        return cast("_Longs", local - (np.array(offsets) * _SECOND)[places])


_FEW_YEARS = 30
