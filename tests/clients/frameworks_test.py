# SPDX-License-Identifier: Apache-2.0
"""Python's frameworks against the server with a scripted model: a chat, a stream and a tool call each. A class runs if its packages are in
this environment; SAKER_FRAMEWORKS names those that have to be."""
import importlib.util
import json
import os
import pathlib
import sys
import unittest

os.environ.update({"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1", "NO_PROXY": "127.0.0.1"})
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from fake import FakeServerTest  # noqa: E402

SCRIPT = json.loads((pathlib.Path(__file__).resolve().parents[1] / "server/clients_script.json").read_text())
WANTED = os.environ.get("SAKER_FRAMEWORKS", "").split()


def framework(name):
    """The class for this module, or none where it is not wanted."""
    def keep(test):
        if name not in WANTED:
            return unittest.skip(f"{name} is not of this environment")(test)
        assert importlib.util.find_spec(name), f"{name} is missing"
        return test
    return keep


def weather(city: str) -> str:
    """The weather in a city."""
    return "sun"


class Scripted(FakeServerTest):
    SCRIPT = SCRIPT

    def setUp(self):
        super().setUp()
        self.base = self.server.address + "/v1"


@framework("langchain_openai")
class LangChain(Scripted):
    def models(self):
        from langchain_anthropic import ChatAnthropic
        from langchain_ollama import ChatOllama
        from langchain_openai import ChatOpenAI
        yield ChatOpenAI(model="fake", base_url=self.base, api_key="none", max_retries=0)
        yield ChatOpenAI(model="fake", base_url=self.base, api_key="none", max_retries=0, use_responses_api=True)
        yield ChatAnthropic(model="fake", base_url=self.server.address, api_key="none", max_retries=0)
        yield ChatOllama(model="fake", base_url=self.server.address)

    def test_all(self):
        from langchain_core.tools import tool
        for model in self.models():
            self.assertEqual(model.invoke("Hello").text, "Hello")
            self.assertEqual("".join(chunk.text for chunk in model.stream("Hello")), "Hello")
            bound = model.bind_tools([tool(weather)])
            got = bound.invoke("one tool")
            self.assertEqual([(call["name"], call["args"]) for call in got.tool_calls], [("weather", {"city": "Oslo"})])
            total = None
            for chunk in bound.stream("one tool"):
                total = chunk if total is None else total + chunk
            self.assertEqual(total.tool_calls[0]["args"], {"city": "Oslo"})
            from langchain_core.messages import HumanMessage, ToolMessage
            back = bound.invoke([HumanMessage("one tool"), got, ToolMessage("sun", tool_call_id=got.tool_calls[0]["id"])])
            self.assertEqual(back.text, "sun")

    def test_structured(self):
        schema = {"title": "place", "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        model = next(self.models())
        self.assertEqual(model.with_structured_output(schema, method="json_schema").invoke("json"), {"city": "Oslo"})


@framework("litellm")
class LiteLlm(Scripted):
    def test_all(self):
        import litellm
        tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
        for name in ("openai/fake", "hosted_vllm/fake"):
            def ask(text, **more):
                return litellm.completion(model=name, api_base=self.base, api_key="none", messages=[{"role": "user", "content": text}], **more)
            self.assertEqual(ask("Hello").choices[0].message.content, "Hello")
            self.assertEqual("".join(part.choices[0].delta.content or "" for part in ask("Hello", stream=True)), "Hello")
            self.assertEqual(ask("one tool", tools=tools).choices[0].message.tool_calls[0].function.name, "weather")
            parts = list(ask("one tool", tools=tools, stream=True))
            built = litellm.stream_chunk_builder(parts)
            self.assertEqual(json.loads(built.choices[0].message.tool_calls[0].function.arguments), {"city": "Oslo"})
        got = litellm.completion(model="anthropic/fake", api_base=self.server.address, api_key="none", messages=[{"role": "user", "content": "Hello"}])
        self.assertEqual(got.choices[0].message.content, "Hello")
        vectors = litellm.embedding(model="openai/fake", api_base=self.base, api_key="none", input=["Once"])
        self.assertEqual(vectors.data[0]["embedding"], [4, 0.5, -1, 0.25])


@framework("pydantic_ai")
class PydanticAi(Scripted):
    def test_all(self):
        from pydantic import BaseModel
        from pydantic_ai import Agent, NativeOutput
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        class Place(BaseModel):
            city: str

        for kind in (OpenAIChatModel, OpenAIResponsesModel):
            model = kind("fake", provider=OpenAIProvider(base_url=self.base, api_key="none"))
            self.assertEqual(Agent(model).run_sync("Hello").output, "Hello")
            self.assertIn("sun", str(Agent(model, tools=[weather]).run_sync("one tool").output))
            self.assertEqual(Agent(model, output_type=NativeOutput(Place)).run_sync("json").output.city, "Oslo")
            stream = Agent(model).run_stream_sync("Hello")
            self.assertEqual(list(stream.stream_text())[-1], "Hello")


@framework("agents")
class OpenAiAgents(Scripted):
    def test_all(self):
        import asyncio

        import agents
        import openai
        agents.set_tracing_disabled(True)
        client = openai.AsyncOpenAI(base_url=self.base, api_key="none", max_retries=0)

        async def run(model):
            agent = agents.Agent(name="a", model=model, tools=[agents.function_tool(weather)])
            self.assertEqual((await agents.Runner.run(agent, "Hello")).final_output, "Hello")
            self.assertEqual((await agents.Runner.run(agent, "one tool")).final_output, "sun")
            stream = agents.Runner.run_streamed(agent, "one tool")
            async for _ in stream.stream_events():
                pass
            self.assertEqual(stream.final_output, "sun")

        async def both():
            await run(agents.OpenAIResponsesModel("fake", client))
            await run(agents.OpenAIChatCompletionsModel("fake", client))
            await client.close()
        asyncio.run(both())


@framework("instructor")
class Instructor(Scripted):
    SCRIPT = [{"when": "one tool", "events": [{"call": {"id": "call_1", "name": "Place", "arguments": '{"city": "Oslo"}'}}]}, *SCRIPT]

    def test_all(self):
        import instructor
        import openai
        from pydantic import BaseModel

        class Place(BaseModel):
            city: str

        client = openai.OpenAI(base_url=self.base, api_key="none", max_retries=0)
        self.addCleanup(client.close)
        for mode, text in ((instructor.Mode.TOOLS, "one tool"), (instructor.Mode.JSON, "json"), (instructor.Mode.JSON_SCHEMA, "json")):
            asked = {"model": "fake", "messages": [{"role": "user", "content": text}], "response_model": Place}
            patched = instructor.from_openai(client, mode=mode)
            self.assertEqual(patched.chat.completions.create(**asked).city, "Oslo", mode)
        stream = instructor.from_openai(client, mode=instructor.Mode.TOOLS).chat.completions.create_partial(
            model="fake", messages=[{"role": "user", "content": "one tool"}], response_model=Place)
        self.assertEqual(list(stream)[-1].city, "Oslo")


@framework("llama_index")
class LlamaIndex(Scripted):
    def test_all(self):
        from llama_index.core.llms import ChatMessage
        from llama_index.core.tools import FunctionTool
        from llama_index.llms.openai_like import OpenAILike
        model = OpenAILike(model="fake", api_base=self.base, api_key="none", is_chat_model=True, is_function_calling_model=True, max_retries=0)
        self.assertEqual(model.chat([ChatMessage(role="user", content="Hello")]).message.content, "Hello")
        self.assertEqual("".join(part.delta or "" for part in model.stream_chat([ChatMessage(role="user", content="Hello")])), "Hello")
        got = model.chat_with_tools([FunctionTool.from_defaults(weather)], user_msg="one tool")
        self.assertEqual(model.get_tool_calls_from_response(got)[0].tool_kwargs, {"city": "Oslo"})
        plain = OpenAILike(model="fake", api_base=self.base, api_key="none", is_chat_model=False, max_retries=0)
        self.assertEqual(plain.complete("Hello").text, "Hello")


if __name__ == "__main__":
    unittest.main()
