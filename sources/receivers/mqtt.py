"""Messages from topics of an MQTT broker, each acknowledged once it is durable.

Quality of service 1: the broker keeps a message until it is acknowledged, even while the receiver is down, since the
session persists. So nothing is lost, and after a crash some messages are repeated: a user property
of MQTT 5, or the key of their tuples, identifies them. Quality of service 2 would not be safer: the client library
confirms a message to the broker before the receiver has it.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from xmlstream.punct_ns.errors import InputError, MalformedInput, UsageError, not_installed, reason
from xmlstream.sources.receivers.message import Message, input_name
from xmlstream.sources.receivers.spool import GroupCommit

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

_LOOK_SECONDS = 0.2
_FOR_EVER = 0xFFFFFFFF
"""The seconds for which a broker keeps the session of an absent receiver, by MQTT 5: without limit."""

_MAX_UNACKNOWLEDGED = 1000
"""The number of messages that the broker sends before it waits for an acknowledgement."""


class Mqtt:
    """Subscribes to topics.

    Args:
        topic: A topic, or a filter with `+` and `#`.
        client_id: The name of the session; a receiver with the same name continues it.
        id_property: The user property that identifies a message; None for none.
        user: Name and password, if the broker requires them.
        apart: Whether each topic is an input of its own.

    Raises:
        UsageError: The extra `mqtt` is not installed.
    """

    def __init__(
        self,
        host: str,
        port: int,
        topic: str,
        *,
        client_id: str,
        id_property: str | None = None,
        user: tuple[str, str | None] | None = None,
        tls: bool = False,
        apart: bool = False,
    ) -> None:
        try:
            import paho.mqtt.client  # noqa: F401 - only whether it is there
        except ImportError:
            raise not_installed("paho-mqtt, which receives by MQTT,", "mqtt") from None
        self.place = f"{'mqtts' if tls else 'mqtt'}://{host}:{port}/{topic}"
        self._host, self._port, self._topic, self._client_id = host, port, topic, client_id
        self._id_property, self._user, self._tls, self._apart = id_property, user, tls, apart

    def run(self, commit: GroupCommit, stop: threading.Event, ready: threading.Event) -> None:
        """Receives messages until `stop` is set; if the broker goes away, waits until it is back.

        Raises:
            InputError: The broker refuses the client or the topic.
            UsageError: The broker cannot be reached at the beginning.
        """
        refused: list[str] = []
        client = self._client(commit, refused, ready)
        try:
            client.connect(self._host, self._port, clean_start=False, properties=_session())
        except OSError as error:
            raise UsageError(f"no broker at {self._host}:{self._port}: {reason(error)}") from None
        client.loop_start()
        try:
            while not stop.wait(_LOOK_SECONDS) and commit.is_running and not refused:
                pass
        finally:
            client.disconnect()
            client.loop_stop()
        if refused:
            raise InputError(f"{self.place}: {refused[0]}")

    def _client(self, commit: GroupCommit, refused: list[str], ready: threading.Event) -> Client:
        from paho.mqtt.client import Client, MQTTv5
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(CallbackAPIVersion.VERSION2, self._client_id, protocol=MQTTv5, manual_ack=True)
        if self._user is not None:
            client.username_pw_set(*self._user)
        if self._tls:
            client.tls_set()

        def connected(client: Client, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
            if reason.is_failure:
                refused.append(f"the broker refuses the connection: {reason}")
                return
            client.subscribe(self._topic, qos=1)

        def subscribed(client: Client, userdata: Any, mid: int, reasons: Any, properties: Any) -> None:
            if any(reason.is_failure for reason in reasons):
                refused.append(f"the broker refuses the topic: {reasons[0]}")
            ready.set()

        def received(client: Client, userdata: Any, message: MQTTMessage) -> None:
            def done(malformed: MalformedInput | None, failure: OSError | None) -> None:
                # The broker keeps unwritten messages, and sends them again with the next connection.
                if failure is None:
                    client.ack(message.mid, message.qos)
                else:
                    with contextlib.suppress(OSError):
                        client.reconnect()

            below, fault = "", None
            try:
                below = input_name(message.topic) if self._apart else ""
            except MalformedInput as error:
                fault = error.what
            id_ = self._id_of(message)
            commit.submit([Message(bytes(message.payload), message.topic, below, id_, fault=fault)], done)

        client.on_connect, client.on_subscribe, client.on_message = connected, subscribed, received
        return client

    def _id_of(self, message: MQTTMessage) -> str | None:
        if self._id_property is None or message.properties is None:
            return None
        pairs = getattr(message.properties, "UserProperty", [])
        return next((f"{message.topic} {value}" for name, value in pairs if name == self._id_property), None)


def _session() -> Any:
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    properties: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = _FOR_EVER
    properties.ReceiveMaximum = _MAX_UNACKNOWLEDGED
    return properties
