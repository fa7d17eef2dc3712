"""Serves functions as tools to agentctl.

This file and tool_pb2.py are the whole protocol; a tool's author changes
neither. docs/plugins.md of agentctl describes what happens here.
"""

import collections
import contextlib
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from concurrent import futures

import grpc

import tool_pb2 as pb

MAX_MESSAGE = 64 << 20
MAX_CHUNK = 32 << 10
MAX_OUTPUT = 10 << 20
MAX_PROGRESS = 4 << 10
MAX_METADATA = 1 << 20
CALLS = 128  # that run at the same time


class ToolError(Exception):
    """Something for the model to read: the call fails with this text."""


class Cancelled(Exception):
    """The call was cancelled, or its time is up."""


class Nobody(Exception):
    """No person answers the question; the text says why."""


# A tool: its parameters are a JSON Schema whose type is object, and run is
# called with a Call and the arguments and returns a text, or a Result.
Tool = collections.namedtuple("Tool", "name description parameters run")


class Result:
    """What a call came to, where a text alone does not say it."""

    def __init__(self, text="", title="", metadata=None, writes=False, exit_code=None):
        self.text, self.title, self.metadata = text, title, metadata
        self.writes, self.exit_code = writes, exit_code


class Call:
    """One call: who asks, and ways to say something before the result."""

    def __init__(self, request, send):
        self.id, self.run, self.agent = request.call_id, request.run, request.agent
        self.workspace, self.key = request.workspace, request.idempotency_key
        self.hidden = list(request.hidden)
        self._ticket, self._send = request.ticket, send
        self._limit = min(request.max_output_bytes or MAX_OUTPUT, MAX_OUTPUT)
        self._kept = self.dropped = 0
        self._shown = 0.0
        self._lock = threading.RLock()
        self._wishes, self._next = {}, 0
        self._stop, self._over = threading.Event(), threading.Event()
        self.code, self.stopped = "", 0.0  # why it was told to end, and when

    def output(self, text):
        """Streams text of the result, in front of what the tool returns."""
        data = text.encode() if isinstance(text, str) else text
        with self._lock:
            room = max(self._limit - self._kept, 0)
            self.dropped += max(len(data) - room, 0)
            data = data[:room]
            self._kept += len(data)
            for i in range(0, len(data), MAX_CHUNK):
                self._send(pb.CallEvent(output=pb.Output(chunk=data[i : i + MAX_CHUNK])))

    def progress(self, text):
        """Shows watchers the newest output, at most ten times a second."""
        with self._lock:
            if time.monotonic() - self._shown < 0.1:
                return
            self._shown = time.monotonic()
            tail = text.encode()[-MAX_PROGRESS:].decode(errors="ignore")
            self._send(pb.CallEvent(progress=pb.Progress(text=tail)))

    def metadata(self, title="", data=None):
        """Tells watchers what the call does and how far it is: a JSON object of at most 16 KiB."""
        encoded = b"" if data is None else json.dumps(data).encode()
        if title or encoded:
            self._send(pb.CallEvent(progress=pb.Progress(title=title, metadata_json=encoded)))

    def cancelled(self):
        """Says whether the call should end."""
        return self._stop.is_set()

    def wait(self, seconds):
        """Sleeps; raises Cancelled as soon as the call should end."""
        if self._stop.wait(seconds):
            raise Cancelled()

    def ask(self, question, *options):
        """Asks the person behind the run; raises Nobody without one."""
        answer = self._wish(question=pb.Question(text=question, options=options))
        if answer.refusal:
            raise Nobody(answer.refusal)
        return answer.text

    def history(self, most=0):
        """Returns the newest messages of the run: [{"role": ..., "text": ...}]."""
        answer = self._wish(history=pb.HistoryWish(most=most))
        if answer.refusal:
            raise ToolError("history of the run: " + answer.refusal)
        return json.loads(answer.history_json)

    def _wish(self, **wish):
        waiting = queue.Queue(1)
        with self._lock:
            self._next += 1
            number = self._next
            self._wishes[number] = waiting
        self._send(pb.CallEvent(ask=pb.Ask(id=number, **wish)))
        answer = waiting.get()  # an answer, or None when the call is stopped
        if answer is None:
            raise Cancelled()
        return answer

    def _grant(self, number, answer):
        with self._lock:
            waiting = self._wishes.pop(number, None)
        if waiting:
            waiting.put(answer)

    def _end(self, code):
        with self._lock:
            self.code, self.stopped = self.code or code, self.stopped or time.monotonic()
            self._stop.set()
            waiting, self._wishes = list(self._wishes.values()), {}
        for w in waiting:
            w.put(None)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


KINDS = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": is_number,
    "integer": lambda v: is_number(v) and v == int(v),
}


def misfit(schema, value, where="the arguments"):
    """Says what is wrong with a value, or None.

    It knows the words that tools use most. agentctl has held the arguments
    against the whole schema before; another caller may not have.
    """
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds and not any(KINDS.get(kind, lambda _: True)(value) for kind in kinds):
        return f"{where}: want {' or '.join(kinds)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where}: want one of {schema['enum']}"
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                return f"{where}: {name} is missing"
        for name, part in value.items():
            if name in known:
                wrong = misfit(known[name], part, name)
                if wrong:
                    return wrong
            elif schema.get("additionalProperties") is False:
                return f"{where}: there is no {name}"
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for i, part in enumerate(value):
            wrong = misfit(schema["items"], part, f"{where}[{i}]")
            if wrong:
                return wrong
    return None


class Service:
    """The methods of agentctl.tool.v1.Tool."""

    def __init__(self, tools):
        self.tools = {t.name: t for t in tools}
        self.calls, self.running, self.lock = {}, 0, threading.Lock()

    def describe(self, _request, _context):
        return pb.DescribeResponse(
            tools=[
                pb.ToolInfo(name=t.name, description=t.description, parameters_json=json.dumps(t.parameters).encode())
                for t in self.tools.values()
            ]
        )

    def call(self, request, context):
        """Yields the events of a call; the tool works in a thread of its own."""
        events = queue.Queue(64)  # a tool that is faster than its reader waits
        gone = threading.Event()

        def send(event):
            while not gone.is_set():
                with contextlib.suppress(queue.Full):
                    return events.put(event, timeout=0.5)

        call = Call(request, send)
        with self.lock:
            self.running += 1
            crowded = self.running > CALLS
            if request.ticket and not crowded:
                self.calls[request.ticket] = call
        try:
            if crowded:
                yield self.result(call, Result(f"the program answers {CALLS} calls at a time; try again"), "tool")
                return
            yield from self.events(call, request, context, events, gone, send)
        finally:
            with self.lock:
                self.running -= 1

    def events(self, call, request, context, events, gone, send):
        context.add_callback(lambda: (gone.set(), call._end("cancelled")))
        threading.Thread(target=self.work, args=(call, request, send), daemon=True).start()
        end = time.monotonic() + request.deadline_ms / 1000 if request.deadline_ms else None
        while True:
            left = 0.5 if end is None else min(max(end - time.monotonic(), 0), 0.5)
            try:
                event = events.get(timeout=0.5 if call.cancelled() else left)
            except queue.Empty:
                if gone.is_set():  # nobody reads any more
                    return
                if call.cancelled() and time.monotonic() - call.stopped >= 0.5:
                    # A tool that does not listen must not hold back the output so far.
                    gone.set()
                    yield self.result(call, Result("did not end in time"), call.code)
                    return
                if end is not None and time.monotonic() >= end:
                    call._end("timeout")
                continue
            yield event
            if event.WhichOneof("event") == "result":
                return

    def work(self, call, request, send):
        try:
            result, code = self.outcome(call, request)
            send(self.result(call, result, code))
        finally:
            call._over.set()
            with self.lock:
                self.calls.pop(request.ticket, None)

    def outcome(self, call, request):
        """Runs the tool; whatever it does is a result and a code."""
        tool = self.tools.get(request.tool)
        if tool is None:
            return Result(f"this program serves no tool {request.tool!r}"), "unknown_tool"
        try:
            args = json.loads(request.args_json)
        except ValueError as e:
            return Result(f"arguments of {tool.name}: {e}"), "schema"
        try:
            wrong = misfit(tool.parameters, args)
            if wrong:
                return Result(f"arguments of {tool.name}: {wrong}"), "schema"
            result = tool.run(call, args)
        except Cancelled:
            return Result(), call.code or "cancelled"
        except (ToolError, Nobody) as e:
            return Result(str(e)), call.code or "tool"
        except BaseException as e:  # also SystemExit: one call must not end the others
            traceback.print_exc()
            return Result(f"the tool failed: {type(e).__name__}: {e}"), call.code or "tool"
        return (result if isinstance(result, Result) else Result(str(result or ""))), ""

    def result(self, call, result, code):
        if len(result.text) > MAX_CHUNK or call._kept + len(result.text.encode()) > call._limit:
            call.output(result.text)
            result.text = ""
        try:
            metadata = b"" if result.metadata is None else json.dumps(result.metadata).encode()
        except (TypeError, ValueError) as e:  # losing it must not lose the result
            print("metadata of a result dropped:", e, file=sys.stderr)
            metadata = b""
        return pb.CallEvent(
            result=pb.Result(
                text=result.text, is_error=bool(code), code=code, title=result.title,
                metadata_json=metadata if len(metadata) <= MAX_METADATA else b"",
                writes=result.writes, exit_code=result.exit_code, dropped_bytes=call.dropped,
            )
        )

    def find(self, ticket):
        with self.lock:
            return self.calls.get(ticket)

    def cancel(self, request, context):
        call = self.find(request.ticket)
        if call:
            call._end("cancelled")
            if not call._over.wait(context.time_remaining() or 60):
                context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the call goes on")
        return pb.CancelResponse()

    def answer(self, request, _context):
        call = self.find(request.ticket)
        if call:
            call._grant(request.id, request)
        return pb.AnswerResponse()

    def end_all(self):
        with self.lock:
            calls = list(self.calls.values())
        for call in calls:
            call._end("cancelled")

    def methods(self):
        def one(method, request):
            return grpc.unary_unary_rpc_method_handler(method, request.FromString, lambda m: m.SerializeToString())

        return grpc.method_handlers_generic_handler(
            "agentctl.tool.v1.Tool",
            {
                "Describe": one(self.describe, pb.DescribeRequest),
                "Cancel": one(self.cancel, pb.CancelRequest),
                "Answer": one(self.answer, pb.AnswerRequest),
                "Call": grpc.unary_stream_rpc_method_handler(
                    self.call, pb.CallRequest.FromString, lambda m: m.SerializeToString()
                ),
            },
        )


def serve(*tools):
    """Is the whole main program: it returns when the program should end."""
    if os.environ.get("AGENTCTL_PLUGIN") != "tool-6c1f0a52":
        sys.exit("this is a tool of agentctl: try agentctl plugin test " + sys.argv[0])
    if os.environ.get("PLUGIN_PROBES") == "1":
        import probes

        tools += probes.TOOLS
    folder = os.environ["PLUGIN_UNIX_SOCKET_DIR"]
    for name in list(os.environ):  # what a tool starts must not find them
        if name == "AGENTCTL_PLUGIN" or name.startswith("PLUGIN_"):
            del os.environ[name]

    service = Service(tools)
    server = grpc.server(
        # Each call has one, and Cancel and Answer must always find a free one.
        futures.ThreadPoolExecutor(2 * CALLS),
        handlers=[service.methods()],
        options=[("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE)],
    )
    path = os.path.join(folder, "tool.sock")
    server.add_insecure_port("unix:" + path)
    server.start()
    os.write(1, f"1|1|unix|{path}|grpc\n".encode())
    os.dup2(2, 1)  # what a tool prints, or a program it starts, goes to stderr

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    while not stop.wait(60):  # without a limit no signal would be noticed on some systems
        pass
    service.end_all()
    server.stop(0.05).wait(0.1)
    os._exit(0)
