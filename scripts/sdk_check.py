"""What scripts/sdk-check runs: each function below is one check, against the server whose address is the argument."""

import json
import sys
import threading
import time
import traceback
import urllib.request
import warnings

import anthropic
import openai
import pydantic
from google import genai
from google.genai import errors, types

URL = sys.argv[1]
KEY = "sk-sdk-check"
MODEL = "fake-model"
CHECKS = []
KEPT = []


def check(function):
    CHECKS.append(function)
    return function


def openai_client(**more):
    # It validates every member of every answer, which it does not do by itself.
    settings = {"api_key": KEY, "base_url": f"{URL}/v1", "max_retries": 0, "_strict_response_validation": True}
    return openai.OpenAI(**{**settings, **more})


def anthropic_client(**more):
    settings = {"api_key": KEY, "base_url": URL, "max_retries": 0, "_strict_response_validation": True}
    return anthropic.Anthropic(**{**settings, **more})


def gemini_client(version=None, key=KEY):
    client = genai.Client(api_key=key, http_options=types.HttpOptions(base_url=URL, api_version=version))
    # A client that nobody holds closes its connections, also while its own call is under way.
    KEPT.append(client)
    return client


def raises(kind, call):
    try:
        call()
    except kind as error:
        assert type(error) is kind, type(error)
        return error
    raise AssertionError(f"expected {kind.__name__}")


def same(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def server(path, method="GET"):
    with urllib.request.urlopen(urllib.request.Request(URL + path, method=method)) as response:
        return json.load(response)


class City(pydantic.BaseModel):
    city: str
    people: int


PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
ARGS = {"city": "Rome", "days": 2}
RESULT = json.dumps({"degrees": 21})

# --- OpenAI chat completions

CHAT_TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather.", "parameters": PARAMETERS, "strict": True},
}


def asked(text):
    return [{"role": "user", "content": text}]


@check
def chat_plain():
    done = openai_client().chat.completions.create(model=MODEL, messages=asked("Ada"))
    same(done.choices[0].message.content, "Hello, Ada! 那")
    same(done.choices[0].finish_reason, "stop")
    same((done.usage.prompt_tokens, done.usage.completion_tokens, done.usage.total_tokens), (15, 5, 20))
    same(done.usage.prompt_tokens_details.cached_tokens, 3)
    same((done.object, done.model), ("chat.completion", MODEL))


@check
def chat_streamed():
    stream = openai_client().chat.completions.create(
        model=MODEL, messages=asked("Ada"), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    same(text, "Hello, Ada! 那")
    same([chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1], "stop")
    same([chunk.usage.total_tokens for chunk in chunks if chunk.usage], [20])


@check
def chat_tool_call_and_result():
    for stream in (False, True):
        client = openai_client()
        messages = asked("The weather in Rome?")
        if stream:
            with client.chat.completions.stream(model=MODEL, messages=messages, tools=[CHAT_TOOL]) as events:
                done = events.get_final_completion()
        else:
            done = client.chat.completions.create(model=MODEL, messages=messages, tools=[CHAT_TOOL])
        same(done.choices[0].finish_reason, "tool_calls")
        said = done.choices[0].message
        [call] = said.tool_calls
        same((call.type, call.function.name, json.loads(call.function.arguments)), ("function", "get_weather", ARGS))
        calls = [{"id": call.id, "type": "function", "function": {"name": "get_weather", "arguments": call.function.arguments}}]
        messages.append({"role": "assistant", "content": said.content, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": call.id, "content": RESULT})
        done = client.chat.completions.create(model=MODEL, messages=messages, tools=[CHAT_TOOL])
        same(done.choices[0].message.content, "It is 21 degrees in Rome.")


@check
def chat_structured_output():
    done = openai_client().chat.completions.parse(model=MODEL, messages=asked("The capital?"), response_format=City)
    same(done.choices[0].message.parsed, City(city="Paris", people=2100000))


@check
def chat_refusal_and_length():
    client = openai_client()
    done = client.chat.completions.create(model=MODEL, messages=asked("refuse"))
    same((done.choices[0].message.refusal, done.choices[0].message.content), ("I will not do that.", None))
    done = client.chat.completions.create(model=MODEL, messages=asked("a long story"))
    same(done.choices[0].finish_reason, "length")


@check
def openai_models():
    same([model.id for model in openai_client().models.list()], [MODEL, "gemini-3-fake", "gpt-5-fake"])
    same(openai_client().models.retrieve(MODEL).id, MODEL)


@check
def openai_errors():
    create = lambda text, **more: openai_client(**more).chat.completions.create(model=MODEL, messages=asked(text))
    cases = {
        400: openai.BadRequestError, 401: openai.AuthenticationError, 403: openai.PermissionDeniedError,
        404: openai.NotFoundError, 429: openai.RateLimitError, 500: openai.InternalServerError,
    }
    for status, kind in cases.items():
        error = raises(kind, lambda: create(f"status {status}"))
        same(error.status_code, status)
        assert error.message and error.body["message"], error
    error = raises(openai.RateLimitError, lambda: create("status 429"))
    same((error.response.headers["retry-after"], error.code), ("7", "rate_limit_exceeded"))
    same(raises(openai.AuthenticationError, lambda: create("hi", api_key="sk-wrong")).code, "invalid_api_key")
    gone = lambda: openai_client().chat.completions.create(model="gone", messages=asked("hi"))
    same(raises(openai.NotFoundError, gone).code, "model_not_found")
    orphan = asked("hi") + [{"role": "tool", "tool_call_id": "a", "content": "1"}]
    wrong = lambda: openai_client().chat.completions.create(model=MODEL, messages=orphan)
    same(raises(openai.BadRequestError, wrong).param, "messages.[1].role")
    inside = lambda: list(openai_client().chat.completions.create(model=MODEL, messages=asked("error inside"), stream=True))
    raises(openai.APIError, inside)


@check
def a_retry_of_the_sdk_is_the_next_attempt():
    client = openai_client(max_retries=2)
    done = client.chat.completions.create(model=MODEL, messages=asked("twice"))
    same(done.choices[0].message.content, "The second time.")
    same([heard["status"] for heard in server("/_fake/journal")][-2:], [429, 200])


# --- OpenAI Responses

RESPONSE_TOOL = {"type": "function", "name": "get_weather", "description": "The weather.", "parameters": PARAMETERS, "strict": True}


@check
def responses_plain():
    done = openai_client().responses.create(model=MODEL, input="Ada", instructions="Be kind.")
    same((done.output_text, done.status), ("Hello, Ada! 那", "completed"))
    same((done.usage.input_tokens, done.usage.output_tokens, done.usage.total_tokens), (15, 5, 20))
    same(done.usage.input_tokens_details.cached_tokens, 3)
    same(openai_client().responses.retrieve(done.id).output_text, done.output_text)


@check
def responses_streamed():
    with openai_client().responses.stream(model=MODEL, input="Ada") as stream:
        events = list(stream)
        done = stream.get_final_response()
    same("".join(event.delta for event in events if event.type == "response.output_text.delta"), "Hello, Ada! 那")
    same(done.output_text, "Hello, Ada! 那")
    raw = list(openai_client().responses.create(model=MODEL, input="Ada", stream=True))
    same([event.sequence_number for event in raw], list(range(len(raw))))
    same((raw[0].type, raw[-1].type), ("response.created", "response.completed"))


@check
def responses_tool_call_and_result():
    for stream in (False, True):
        client = openai_client()
        items = asked("The weather in Rome?")
        settings = {"model": "gpt-5-fake", "tools": [RESPONSE_TOOL], "reasoning": {"effort": "low"}}
        if stream:
            with client.responses.stream(input=items, **settings) as events:
                list(events)
                done = events.get_final_response()
        else:
            done = client.responses.create(input=items, **settings)
        same([item.type for item in done.output], ["reasoning", "message", "function_call"])
        same(done.output[0].summary[0].text, "The weather is looked up.")
        call = done.output[2]
        same((call.name, json.loads(call.arguments)), ("get_weather", ARGS))
        output = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
        # In both ways: everything again, or only what is new.
        for more in ({"input": [*items, *done.output, output]}, {"input": [output], "previous_response_id": done.id}):
            same(client.responses.create(**more, **settings).output_text, "It is 21 degrees in Rome.")


@check
def responses_structured_output():
    done = openai_client().responses.parse(model=MODEL, input="The capital?", text_format=City)
    same(done.output_parsed, City(city="Paris", people=2100000))


@check
def responses_refusal_and_length():
    done = openai_client().responses.create(model=MODEL, input="refuse")
    same(done.output[0].content[0].refusal, "I will not do that.")
    done = openai_client().responses.create(model=MODEL, input="a long story")
    same((done.status, done.incomplete_details.reason), ("incomplete", "max_output_tokens"))


@check
def responses_errors():
    create = lambda text, **more: openai_client().responses.create(model=MODEL, input=text, **more)
    raises(openai.RateLimitError, lambda: create("status 429"))
    raises(openai.BadRequestError, lambda: create("status 400"))
    raises(openai.InternalServerError, lambda: create("status 529"))
    error = raises(openai.BadRequestError, lambda: create("hi", previous_response_id="resp_gone"))
    same(error.code, "previous_response_not_found")
    # Here an error is an event among others, which this SDK hands on as it is.
    last = list(create("error inside", stream=True))[-1]
    same((last.type, last.code), ("error", "server_error"))


# --- Anthropic Messages

TOOL = {"name": "get_weather", "description": "The weather.", "input_schema": PARAMETERS}


def message(text, **more):
    return {"model": MODEL, "max_tokens": 2000, "messages": asked(text), **more}


@check
def messages_plain():
    done = anthropic_client().messages.create(**message("Ada", system="Be kind."))
    same([(block.type, block.text) for block in done.content], [("text", "Hello, Ada! 那")])
    same((done.stop_reason, done.role, done.model), ("end_turn", "assistant", MODEL))
    usage = done.usage
    same((usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens), (12, 3, 5))


@check
def messages_streamed():
    with anthropic_client().messages.stream(**message("Ada")) as stream:
        same("".join(stream.text_stream), "Hello, Ada! 那")
        done = stream.get_final_message()
    same((done.stop_reason, done.usage.input_tokens, done.usage.output_tokens), ("end_turn", 12, 5))
    events = [event.type for event in anthropic_client().messages.create(**message("Ada"), stream=True)]
    same((events[0], events[-1]), ("message_start", "message_stop"))


@check
def messages_tool_call_and_result():
    thinking = {"type": "enabled", "budget_tokens": 1024}
    for stream in (False, True):
        client = anthropic_client()
        request = message("The weather in Rome?", tools=[TOOL], thinking=thinking)
        if stream:
            with client.messages.stream(**request) as events:
                done = events.get_final_message()
        else:
            done = client.messages.create(**request)
        same(done.stop_reason, "tool_use")
        same([block.type for block in done.content], ["thinking", "text", "tool_use"])
        use = done.content[2]
        same((use.name, use.input), ("get_weather", ARGS))
        result = {"type": "tool_result", "tool_use_id": use.id, "content": RESULT}
        request["messages"] += [{"role": "assistant", "content": done.content}, {"role": "user", "content": [result]}]
        same(client.messages.create(**request).content[0].text, "It is 21 degrees in Rome.")
        # The same without its thinking is refused, as by the real one.
        request["messages"][1]["content"] = done.content[1:]
        error = raises(anthropic.BadRequestError, lambda: client.messages.create(**request))
        assert "Expected `thinking`" in str(error), error


@check
def messages_thinking():
    request = message("Please think.", thinking={"type": "adaptive"})
    for done in (anthropic_client().messages.create(**request), streamed(request)):
        same([block.type for block in done.content], ["thinking", "text"])
        same((done.content[0].thinking, done.content[1].text), ("First this, then that.", "Thought through."))
        assert done.content[0].signature
        same(done.usage.output_tokens, 10)


def streamed(request):
    with anthropic_client().messages.stream(**request) as stream:
        return stream.get_final_message()


@check
def messages_structured_output():
    done = anthropic_client().messages.parse(**message("The capital?"), output_format=City)
    same(done.parsed_output, City(city="Paris", people=2100000))


@check
def messages_refusal_and_length():
    done = anthropic_client().messages.create(**message("refuse"))
    same((done.stop_reason, done.stop_details.explanation), ("refusal", "I will not do that."))
    same(anthropic_client().messages.create(**message("a long story")).stop_reason, "max_tokens")


@check
def messages_count_and_models():
    request = message("12345678")
    del request["max_tokens"]
    same(anthropic_client().messages.count_tokens(**request).input_tokens, 2)
    same([model.id for model in anthropic_client().models.list()], [MODEL, "gemini-3-fake", "gpt-5-fake"])


@check
def anthropic_errors():
    create = lambda text, **more: anthropic_client(**more).messages.create(**message(text))
    cases = {
        400: anthropic.BadRequestError, 401: anthropic.AuthenticationError, 403: anthropic.PermissionDeniedError,
        404: anthropic.NotFoundError, 429: anthropic.RateLimitError, 500: anthropic.InternalServerError,
        529: anthropic._exceptions.OverloadedError,
    }
    for status, kind in cases.items():
        error = raises(kind, lambda: create(f"status {status}"))
        same((error.status_code, error.body["type"]), (status, "error"))
    same(raises(anthropic.RateLimitError, lambda: create("status 429")).response.headers["retry-after"], "7")
    raises(anthropic.AuthenticationError, lambda: create("hi", api_key="sk-wrong"))
    gone = lambda: anthropic_client().messages.create(**message("hi", model="gone"))
    raises(anthropic.NotFoundError, gone)
    try:
        list(anthropic_client().messages.create(**message("error inside"), stream=True))
    except anthropic.APIStatusError as error:
        same(error.body["error"]["type"], "overloaded_error")
    else:
        raise AssertionError("the error inside of the stream was not seen")


# --- Gemini. Its SDK cannot read the comments that servers may send to keep a connection alive; the others can.

DECLARATION = types.FunctionDeclaration(
    name="get_weather",
    description="The weather.",
    parameters=types.Schema(
        type="OBJECT",
        properties={"city": types.Schema(type="STRING"), "days": types.Schema(type="INTEGER")},
        required=["city", "days"],
    ),
)
GEMINI_TOOLS = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[DECLARATION])])


@check
def gemini_plain():
    for version in (None, "v1", "v1beta"):
        config = types.GenerateContentConfig(temperature=0.5, max_output_tokens=100)
        done = gemini_client(version).models.generate_content(model="gemini-3-fake", contents="Ada", config=config)
        same(done.text, "Hello, Ada! 那")
        same(done.candidates[0].finish_reason, types.FinishReason.STOP)
        usage = done.usage_metadata
        same((usage.prompt_token_count, usage.cached_content_token_count, usage.candidates_token_count), (15, 3, 5))
        same(usage.total_token_count, 20)


@check
def gemini_streamed():
    chunks = list(gemini_client().models.generate_content_stream(model="gemini-3-fake", contents="Ada"))
    same("".join(chunk.text or "" for chunk in chunks), "Hello, Ada! 那")
    same(chunks[-1].candidates[0].finish_reason, types.FinishReason.STOP)
    same(chunks[-1].usage_metadata.total_token_count, 20)


@check
def gemini_function_call_and_response():
    for model in (MODEL, "gemini-3-fake"):
        client = gemini_client("v1beta")
        asked = types.Content(role="user", parts=[types.Part(text="The weather in Rome?")])
        done = client.models.generate_content(model=model, contents=[asked], config=GEMINI_TOOLS)
        [call] = done.function_calls
        same((call.name, call.args), ("get_weather", ARGS))
        thought = done.candidates[0].content.parts[0]
        same((thought.thought, thought.text), (True, "The weather is looked up."))
        part = types.Part.from_function_response(name="get_weather", response={"degrees": 21})
        said = done.candidates[0].content
        contents = [asked, said, types.Content(role="user", parts=[part])]
        done = client.models.generate_content(model=model, contents=contents, config=GEMINI_TOOLS)
        same(done.text, "It is 21 degrees in Rome.")
        streamed = client.models.generate_content_stream(model=model, contents=[asked], config=GEMINI_TOOLS)
        calls = [call for chunk in streamed for call in chunk.function_calls or []]
        same([(call.name, call.args) for call in calls], [("get_weather", ARGS)])
        if model != MODEL:
            signed = [part for part in said.parts if part.function_call]
            assert signed[0].thought_signature, signed
            signed[0].thought_signature = None
            error = raises(
                errors.ClientError,
                lambda: client.models.generate_content(model=model, contents=contents, config=GEMINI_TOOLS),
            )
            assert "thought_signature" in error.message, error


@check
def gemini_structured_output():
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=City)
    done = gemini_client("v1beta").models.generate_content(model=MODEL, contents="The capital?", config=config)
    same(done.parsed, City(city="Paris", people=2100000))


@check
def gemini_refusal_length_count_and_models():
    client = gemini_client("v1beta")
    done = client.models.generate_content(model=MODEL, contents="refuse")
    same(done.candidates[0].finish_reason, types.FinishReason.SAFETY)
    done = client.models.generate_content(model=MODEL, contents="a long story")
    same(done.candidates[0].finish_reason, types.FinishReason.MAX_TOKENS)
    same(client.models.count_tokens(model=MODEL, contents="12345678").total_tokens, 2)
    same([model.name for model in client.models.list()], [f"models/{name}" for name in (MODEL, "gemini-3-fake", "gpt-5-fake")])


@check
def gemini_errors():
    generate = lambda text, **more: gemini_client(**more).models.generate_content(model=MODEL, contents=text)
    for status, kind, word in [
        (400, errors.ClientError, "INVALID_ARGUMENT"), (403, errors.ClientError, "PERMISSION_DENIED"),
        (404, errors.ClientError, "NOT_FOUND"), (429, errors.ClientError, "RESOURCE_EXHAUSTED"),
        (500, errors.ServerError, "INTERNAL"),
    ]:
        error = raises(kind, lambda: generate(f"status {status}"))
        same((error.code, error.status), (status, word))
    error = raises(errors.ClientError, lambda: generate("hi", key="sk-wrong"))
    assert "API key not valid" in error.message, error
    ended = types.Content(role="model", parts=[types.Part(text="hi")])
    raises(errors.ClientError, lambda: gemini_client().models.generate_content(model=MODEL, contents=[ended]))


# --- connections


@check
def a_stall_ends_when_its_gate_is_opened():
    def opens():
        while not any("stall" in json.dumps(heard["body"]) for heard in server("/_fake/journal")):
            time.sleep(0.01)
        server("/_fake/open/sdk", "POST")

    opener = threading.Thread(target=opens)
    opener.start()
    same(streamed(message("stall")).content[0].text, "It went on.")
    opener.join()


@check
def a_cut_stream_is_an_error():
    for call in (
        lambda: list(openai_client().chat.completions.create(model=MODEL, messages=asked("cut"), stream=True)),
        lambda: streamed(message("cut")),
        lambda: list(gemini_client().models.generate_content_stream(model=MODEL, contents="cut")),
    ):
        try:
            call()
        except Exception as error:
            assert type(error).__name__ in ("APIConnectionError", "RemoteProtocolError", "ReadError"), repr(error)
        else:
            raise AssertionError("the cut was not seen")


@check
def the_journal_holds_no_key():
    journal = json.dumps(server("/_fake/journal"))
    assert KEY not in journal and "sk-wrong" not in journal


def main():
    failed = 0
    for function in CHECKS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)
                function()
        except Exception:
            failed += 1
            print(f"FAILED {function.__name__}")
            traceback.print_exc(file=sys.stdout)
        else:
            print(f"ok     {function.__name__}")
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
