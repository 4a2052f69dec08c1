"""The server's half of a Cursus connection: frames in, requests out; replies in, frames out.

A frame is `u32 length | body`. A body is a batch, a raw text command, or an envelope (topic and
text); which of them, its first bytes tell. What is wrong inside a frame is answered and the
connection goes on; it closes where the position in the stream is lost, after a body that is nothing
at all, and where the document says so.
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final

from dragoman.codecs.base import (
    NOTHING,
    HungUp,
    IfTopic,
    Offload,
    Refused,
    Sent,
    foreign_framing,
    foreign_protocol,
)
from dragoman.codecs.compression import BadCompression, chosen, registry
from dragoman.codecs.cursus import batching, event_reply, group_reply, translate
from dragoman.codecs.cursus.argument import Context
from dragoman.codecs.cursus.ask_group import joined
from dragoman.codecs.cursus.ask_write import direct
from dragoman.codecs.cursus.asking import ask
from dragoman.codecs.cursus.command import (
    COMMAND_BYTES_MAX,
    EVERYWHERE,
    find_keyword,
    is_named,
    parse,
)
from dragoman.codecs.cursus.describing import described_json
from dragoman.codecs.cursus.inflate import bound_of
from dragoman.codecs.cursus.legacy import legacy_line
from dragoman.codecs.cursus.reply import batch_frames, frame, matching_frames, payload_frames
from dragoman.codecs.cursus.translate import AckTag, Style, Tag
from dragoman.codecs.cursus.wire import MAGIC
from dragoman.codecs.framing import Reassembly
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.event import EventReply
from dragoman.core.name import split_flat

if TYPE_CHECKING:
    from dragoman.codecs.base import Buffer, Facts, Heard

_U32 = Struct(">I").unpack_from
_U16 = Struct(">H").unpack_from
_FRAMES: Final = Style.FRAMES
_OFFLOAD_BYTES: Final = 256 * 1024


class CursusCodec:
    """Speaks Cursus on one connection."""

    def __init__(self, facts: Facts) -> None:
        self._limits = facts.limits
        self._renderings = facts.renderings
        self._context = Context.of(facts)
        host, port = self._context.address
        self._leader = f"{host}:{port}"
        self._legacy = self._context.is_legacy
        self._create = self._context.create_partitions
        self._rest = Reassembly()
        self._compressions = registry()
        unmarked = chosen(facts.options["compression"])
        self._unmarked = unmarked if unmarked and not unmarked.magic else None

    # ------------------------------------------------------------ bytes in

    def receive(self, data: Buffer) -> list[Heard]:
        """Takes what arrived and returns every complete request in it."""
        if not data:
            return [HungUp("cut off inside a frame" if self._rest.held else "end of stream")]
        unread = self._rest.add(data)
        return [] if unread is None else self._frames(unread, 0, offloaded=False)

    def wanted(self) -> int:
        """Bytes still missing of the current frame."""
        return self._rest.wanted

    def held(self) -> int:
        """Bytes of a frame that is not whole yet."""
        return self._rest.held

    def _frames(self, data: bytes, at: int, *, offloaded: bool) -> list[Heard]:
        """Every whole frame from `at` on; what is left is kept for the next time.

        Args:
            offloaded: This runs in a thread: nothing is too much work.
        """
        heard: list[Heard] = []
        size = len(data)
        needed = 4
        frame_bytes_max = self._limits.frame_bytes_max
        while (left := size - at) >= 4:
            (length,) = _U32(data, at)
            if length > frame_bytes_max:
                heard.append(self._lost(data[at : at + 4], length))
                return heard
            begin, end = at + 4, at + 4 + length
            if size < end:
                if left >= 8 and _is_iggy(data, at):
                    heard.append(self._lost(data[at : at + 4], length))
                    return heard
                # Not more than tells Iggy is waited for until that is known.
                needed = 4 + length if left >= 8 else min(4 + length, 8)
                break
            if not offloaded and length > _OFFLOAD_BYTES:
                heard.append(Offload(partial(self._frames, data, at, offloaded=True)))
                return heard
            if data[begin : begin + 2] == MAGIC:
                heard.append(batching.ask(data, begin, end, self._create))
            else:
                items = self._body(data[begin:end], offloaded=offloaded)
                if items is None:
                    heard.append(Offload(partial(self._frames, data, at, offloaded=True)))
                    return heard
                heard += items
                if type(items[-1]) is HungUp or (type(items[-1]) is Refused and items[-1].fatal):
                    return heard
            at = end
        if at < size:
            self._rest.keep(data[at:], needed)
        return heard

    def _lost(self, first: bytes, length: int) -> Refused:
        """A length that cannot be, or is none."""
        limit = self._limits.frame_bytes_max
        framing = foreign_framing(first)
        if stranger := foreign_protocol(first) or (framing if length <= limit else ""):
            return Refused(Tag(), Failure(ErrorCode.WRONG_PROTOCOL, stranger), fatal=True)
        detail = f"a frame of {length} bytes; {limit} are allowed"
        if framing:
            detail += f"; it looks like {framing}"
        failure = Failure(ErrorCode.FRAME_TOO_LARGE, detail, {"size": length, "limit": limit})
        return Refused(Tag(), failure, fatal=True)

    def _body(self, body: bytes, *, offloaded: bool) -> list[Heard] | None:
        """What a frame asks that is not a plain batch; None where a thread has to find out."""
        begins = self._compressions.begins
        compression = self._compressions.sniff(body) if body[:1] in begins else None
        if compression is None and self._unmarked is not None and not _is_plain(body):
            compression = self._unmarked
        if compression is None:
            return self._text(body)
        bound = bound_of(len(body), self._limits.frame_bytes_max)
        try:
            body = compression.open(body, bound if offloaded else min(bound, _OFFLOAD_BYTES))
        except BadCompression as bad:
            if not offloaded and bound > _OFFLOAD_BYTES:
                return None
            return [_unopened(f'decode_failed reason="{bad}"')]
        if body[:2] == MAGIC:
            return [batching.ask(body, 0, len(body), self._create)]
        return self._text(body)

    def _text(self, body: bytes) -> list[Heard]:
        """What a text asks: a raw command, or a command or message in an envelope."""
        size = len(body)
        # An envelope begins with a zero byte, since no topic is longer than 255: a raw command
        # is therefore never one.
        if body[:1] != b"\0" and (found := find_keyword(body)) is not None:
            return self._command(*found, body)
        if size < 2:
            return [_refused('decode_failed reason="data too short"')]
        begin = 2 + _U16(body, 0)[0]
        if begin < size:
            text = body[begin:]
            if (found := find_keyword(text)) is not None:
                keyword, at = found
                if begin > 2 and keyword not in EVERYWHERE and not is_named(text, at):
                    return self._either(body[2:begin], keyword, at, text)
                return self._command(keyword, at, text)
            if begin > 2:
                return [direct(self._context, body[2:begin], text)]
        return [_refused("malformed_input reason=missing_topic_or_payload", fatal=True)]

    def _either(self, topic: bytes, keyword: str, begin: int, text: bytes) -> list[Heard]:
        """A text that is a message where its envelope's topic exists, and else a command."""
        commanded = self._command(keyword, begin, text)
        message = direct(self._context, topic, text)
        if type(message) is Refused:  # no topic has such a name
            return commanded
        namespace, name = split_flat(topic.decode())
        return [IfTopic(name, namespace, [message], commanded)]

    def _command(self, keyword: str, begin: int, text: bytes) -> list[Heard]:
        command = parse(keyword, text[begin:])
        if command is None:
            return [_refused(f"command_too_long limit={COMMAND_BYTES_MAX}")]
        return ask(self._context, command, text)

    # ------------------------------------------------------------ bytes out

    def send(self, tag: Tag | AckTag, reply: calls.Reply) -> Sent:
        """Renders a reply."""
        if type(reply) is calls.Produced:
            if isinstance(tag, AckTag):
                last = reply.last_offset
                if last is None:
                    last = reply.base_offset + reply.count - 1
                return Sent((frame(translate.ack(tag, last, self._leader)),))
            return Sent((frame("OK"),))
        assert isinstance(tag, Tag), "only what writes has another tag"
        match reply:
            case calls.Fetched():
                if tag.style is _FRAMES:
                    return Sent(payload_frames(reply.slices), close_after=True)
                only = batch_frames(reply.slices, tag, self._renderings, only_first=True)
                return Sent(only)
            case calls.Followed():
                if tag.style is _FRAMES:
                    return Sent(payload_frames(reply.slices))
                return Sent(batch_frames(reply.slices, tag, self._renderings, only_first=False))
            case _ if isinstance(reply, group_reply.GroupReply):
                if tag.consumer and type(reply) is calls.GroupJoined:
                    joined(self._context, tag, reply.member)
                line = group_reply.line(tag, reply, legacy=self._legacy)
                return Sent((frame(line),), close_after=tag.closes)
            case calls.FetchedMatching(_, parts):
                only = matching_frames(parts, tag, self._renderings, apart=self._legacy)
                return Sent(only)
            case _ if isinstance(reply, EventReply):
                return Sent(event_reply.frames(tag, reply, self._renderings, legacy=self._legacy))
        return Sent((frame(self._line(tag, reply)),), close_after=tag.closes)

    def _line(self, tag: Tag, reply: calls.Reply) -> str:
        """The one line that answers a command."""
        if self._legacy and (line := legacy_line(tag, reply)) is not None:
            return line
        match reply:
            case calls.TopicDescribed(topic) if tag.command == "DESCRIBE":
                return described_json(topic, tag.topic, self._leader)
            case calls.TopicCreated(topic) | calls.TopicDescribed(topic):
                return translate.topic_line(topic, tag, self._leader)
            case calls.TopicDeleted():
                return f"OK topic={tag.topic} deleted=true"
            case calls.RecordsDeleted(partition, log_start):
                return f"OK topic={tag.topic} partition={partition} log_start={log_start}"
            case calls.TopicsListed():
                return translate.topics_line(reply)
            case calls.Answered(payload):
                return str(payload)
        raise AssertionError(f"no command of this dialect is answered by {type(reply).__name__}")

    def send_failure(self, tag: Tag | AckTag, failure: Failure) -> Sent:
        """Renders a failure in the words of this dialect."""
        if isinstance(tag, AckTag):
            return Sent((frame(translate.refusal(tag, failure, self._leader)),))
        if tag.after is not None and tag.after.is_refused:
            return NOTHING
        tag.is_refused = True
        told = group_reply.refusal(tag, failure, legacy=self._legacy)
        if told is None:
            told = event_reply.refusal(tag, failure, self._leader, legacy=self._legacy)
        body = translate.refusal(tag, failure, self._leader) if told is None else told
        return Sent((frame(body),), close_after=tag.closes)

    def send_idle(self, tag: Tag) -> Sent:
        """The keep-alive of a stream: an empty batch, which every client passes over."""
        return Sent(batch_frames((), tag, self._renderings, only_first=True))


def _is_iggy(data: bytes, at: int) -> bool:
    """Whether a length and the body behind it are two small numbers with their low byte first.

    No body of this dialect begins so, and who sends that waits for an answer, not to send the
    megabytes that the length means here.
    """
    code = data[at + 4 : at + 8]
    return data[at + 2 : at + 4] == b"\0\0" == code[2:] and code[1] < 4 and any(code)


def _is_plain(body: bytes) -> bool:
    """Whether a body is a raw command, or an envelope with a command or a message in it."""
    if body[:1] != b"\0":
        return find_keyword(body) is not None
    begin = 2 + _U16(body, 0)[0] if len(body) > 1 else len(body)
    return begin < len(body) and (begin > 2 or find_keyword(body[2:]) is not None)


def _refused(wording: str, *, fatal: bool = False) -> Refused:
    return Refused(Tag(wording=wording), Failure(ErrorCode.MALFORMED, wording), fatal)


def _unopened(wording: str) -> Refused:
    """A frame that cannot be opened; only batches are compressed, so it is answered as one."""
    return Refused(AckTag(wording=wording), Failure(ErrorCode.MALFORMED, wording))
