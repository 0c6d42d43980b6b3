// The AI SDK with its provider for the Responses API; the first argument is the folder with node_modules.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { MODEL, PARAMETERS, PIXEL, SUM, main } from "./drive.mjs";

const base = pathToFileURL(`${process.argv[2]}/x.js`);
const load = async (name) => await import(import.meta.resolve ? pathToFileURL(createRequire(base).resolve(name)) : name);
const { Output, generateText, jsonSchema, stepCountIs, isStepCount, streamText, tool } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");

await main(async (kind, url, streamed) => {
  const model = createOpenAI({ baseURL: url, apiKey: "sk-1" }).responses(MODEL);
  const body = { model, maxRetries: 0, messages: [{ role: "user", content: "hi" }], stopWhen: (isStepCount ?? stepCountIs)(5) };
  if (kind === "image") {
    body.messages[0].content = [{ type: "text", text: "hi" }, { type: "image", image: PIXEL }];
  }
  if (["tools", "parallel", "reasoning"].includes(kind)) {
    body.tools = { add: tool({ inputSchema: jsonSchema(PARAMETERS), execute: async ({ a, b }) => String(a + b) }) };
    body.providerOptions = { openai: { store: false, include: ["reasoning.encrypted_content"], forceReasoning: true } };
  }
  if (kind === "structured") body.output = Output.object({ schema: jsonSchema(SUM) });
  if (!streamed) {
    const result = await generateText(body);
    if (kind === "structured") return result.output.total;
    return kind === "incomplete" ? `${result.text}: ${result.finishReason}` : result.text;
  }
  let failed;
  const result = streamText({ ...body, onError: ({ error }) => { failed = error; } });
  for await (const _ of result.fullStream);
  if (failed) throw failed;
  if (kind === "structured") return (await result.output).total;
  return kind === "incomplete" ? `${await result.text}: ${await result.finishReason}` : await result.text;
});
