// A client of the Responses API over a WebSocket, in plain code with npm's ws. It sends the messages of its argument, a JSON array,
// each after the end of the answer before it ("$last" becomes the id of the last response), and prints the answers.
import { createRequire } from "node:module";

const [url, messages, folder] = process.argv.slice(2);
const { WebSocket } = createRequire(`${folder}/`)("ws");
const waiting = JSON.parse(messages);
const answers = [];
const socket = new WebSocket(url, { headers: { authorization: "Bearer key" } });
let types = [];
let last = null;

function next() {
  if (waiting.length === 0) return socket.close(1000);
  types = [];
  socket.send(JSON.stringify(waiting.shift()).replaceAll('"$last"', JSON.stringify(last)));
}

socket.on("open", next);
socket.on("message", (data) => {
  const event = JSON.parse(data.toString());
  types.push(event.type);
  if (event.type === "error") answers.push({ types, status: event.status, code: event.error.code });
  else if (event.type === "response.completed") {
    last = event.response.id;
    answers.push({ types, text: event.response.output.flatMap((item) => item.content ?? []).map((part) => part.text).join("") });
  } else return;
  next();
});
socket.on("close", (code) => console.log(JSON.stringify({ answers, code, extensions: socket.extensions })));
