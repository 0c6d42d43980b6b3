// What the drivers in JavaScript share: jobs on stdin, outcomes on stdout as JSON. As drive.py.
import { text } from "node:stream/consumers";

export const MODEL = "gpt-5.2-codex";
export const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
export const PARAMETERS = {
  type: "object",
  properties: { a: { type: "integer" }, b: { type: "integer" } },
  required: ["a", "b"],
  additionalProperties: false,
};
export const SUM = { type: "object", properties: { total: { type: "integer" } }, required: ["total"], additionalProperties: false };

export async function main(run) {
  const found = [];
  for (const job of JSON.parse(await text(process.stdin))) {
    try {
      found.push(String(await run(job.kind, job.url + "/v1", job.streamed)));
    } catch (error) {
      const status = error?.status ?? error?.statusCode;
      const name = error?.constructor?.name ?? typeof error;
      found.push(typeof status === "number" ? `${name} ${status}` : name);
    }
  }
  console.log(JSON.stringify(found));
}
