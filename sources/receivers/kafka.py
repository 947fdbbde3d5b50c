"""Messages from the partitions of a Kafka topic, exactly once.

Kafka keeps messages in order, so no ids are needed: how far each partition was read is recorded in the same
transaction as the messages, and reading starts there. Kafka's own offsets of consumer groups are not used.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xmlstream.punct_ns.errors import InputError, UsageError, not_installed
from xmlstream.sources.receivers.message import Message
from xmlstream.sources.receivers.spool import GroupCommit, raise_failure

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_LOOK_SECONDS = 0.2
_MESSAGES_AT_ONCE = 1000
_METADATA_SECONDS = 10.0
_DISCOVER_SECONDS = 10.0


class Kafka:
    """Reads all partitions of a topic, from the offsets in the directory's journal; at first from the beginning.

    Args:
        brokers: `host:port`, several separated by commas.
        settings: Further settings of librdkafka.
        apart: Whether each partition is an input of its own.

    Raises:
        UsageError: The extra `kafka` is not installed.
    """

    def __init__(self, brokers: str, topic: str, settings: Mapping[str, str], *, apart: bool = False) -> None:
        try:
            import confluent_kafka  # noqa: F401 - only whether it is there
        except ImportError:
            raise not_installed("confluent-kafka, which receives from Kafka,", "kafka") from None
        self.place = f"kafka://{brokers}/{topic}"
        self._brokers, self._topic, self._settings, self._apart = brokers, topic, dict(settings), apart

    def run(self, commit: GroupCommit, stop: threading.Event, ready: threading.Event) -> None:
        """Reads messages until `stop` is set.

        Raises:
            UsageError: There are no such brokers, or no such topic.
            InputError: A partition can no longer be read from the recorded offset.
        """
        from confluent_kafka import Consumer, KafkaException

        consumer = Consumer(
            {
                "group.id": "xmlstream",  # required, though no offset is ever committed
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "log_level": 0,  # errors are raised
                **self._settings,
                "bootstrap.servers": self._brokers,
            }
        )
        try:
            partitions = self._assign(consumer, commit, set())
            ready.set()
            quiet = 0.0
            while not stop.is_set() and commit.is_running:
                found = consumer.consume(_MESSAGES_AT_ONCE, _LOOK_SECONDS)
                self._submit(found, commit)
                quiet = 0.0 if found else quiet + _LOOK_SECONDS
                if quiet >= _DISCOVER_SECONDS:
                    partitions, quiet = self._assign(consumer, commit, partitions), 0.0
        except KafkaException as error:
            raise InputError(f"{self.place}: {error.args[0].str()}") from None
        finally:
            consumer.close()

    def _assign(self, consumer: Consumer, commit: GroupCommit, known: set[int]) -> set[int]:
        """Assigns the present partitions that are not known yet; returns all."""
        from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

        try:
            topic = consumer.list_topics(self._topic, timeout=_METADATA_SECONDS).topics[self._topic]
        except KafkaException as error:
            raise UsageError(f"no broker at {self._brokers}: {error.args[0].str().lower()}") from None
        if topic.error is not None:
            raise UsageError(f"{self._brokers} has no topic {self._topic}: {topic.error.str().lower()}")
        new = set(topic.partitions) - known
        if new:
            starts = []
            for number in sorted(new):
                at = commit.spool.next_of(self._log(number))
                starts.append(TopicPartition(self._topic, number, OFFSET_BEGINNING if at is None else at))
            consumer.incremental_assign(starts)
        return known | new

    def _log(self, partition: int) -> str:
        return f"{self._topic}/{partition}"

    def _input(self, partition: int) -> str:
        return f"partition-{partition:06d}" if self._apart else ""

    def _submit(self, found: list[Any], commit: GroupCommit) -> None:
        messages = []
        for each in found:
            if each.error() is not None:
                raise InputError(f"{self.place}, partition {each.partition()}: {each.error().str()}")
            log, offset = self._log(each.partition()), each.offset()
            messages.append(
                Message(each.value() or b"", f"{log} at {offset}", self._input(each.partition()), None, log, offset)
            )
        if messages:
            # After a failure the next receiver reads the unwritten messages again.
            commit.submit(messages, raise_failure)
