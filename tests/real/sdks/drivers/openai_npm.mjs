// The OpenAI SDK for JavaScript; the first argument is the folder with node_modules.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { MODEL, PARAMETERS, PIXEL, SUM, main } from "./drive.mjs";

const require = createRequire(pathToFileURL(`${process.argv[2]}/x.js`));
const { OpenAI } = require("openai");

async function ask(url, streamed, body) {
  const client = new OpenAI({ baseURL: url, apiKey: "sk-1", maxRetries: 0 });
  if (!streamed) return await client.responses.create({ model: MODEL, ...body });
  let last;
  for await (const event of await client.responses.create({ model: MODEL, ...body, stream: true })) last = event;
  return last.response;
}

const said = (response) =>
  response.output.flatMap((item) => item.content ?? []).map((part) => (part.type === "output_text" ? part.text : "")).join("");

async function agent(url, streamed) {
  const input = [{ role: "user", content: "2 + 3?" }];
  const tools = [{ type: "function", name: "add", parameters: PARAMETERS, strict: true }];
  for (;;) {
    const response = await ask(url, streamed, { input, tools, include: ["reasoning.encrypted_content"], store: false });
    input.push(...response.output);
    const calls = response.output.filter((item) => item.type === "function_call");
    if (calls.length === 0) return said(response);
    for (const call of calls) {
      const { a, b } = JSON.parse(call.arguments);
      input.push({ type: "function_call_output", call_id: call.call_id, output: String(a + b) });
    }
  }
}

await main(async (kind, url, streamed) => {
  if (["tools", "parallel", "reasoning"].includes(kind)) return await agent(url, streamed);
  const body = { input: "hi" };
  if (kind === "structured") body.text = { format: { type: "json_schema", name: "Sum", schema: SUM, strict: true } };
  const parts = [{ type: "input_text", text: "hi" }, { type: "input_image", image_url: PIXEL, detail: "auto" }];
  if (kind === "image") body.input = [{ role: "user", content: parts }];
  const response = await ask(url, streamed, body);
  if (kind === "structured") return JSON.parse(said(response)).total;
  if (kind === "refusal") return response.output[0].content[0].refusal;
  if (response.status === "incomplete") return `incomplete: ${response.incomplete_details.reason}`;
  return response.status === "failed" ? `failed: ${response.error.code}` : said(response);
});
