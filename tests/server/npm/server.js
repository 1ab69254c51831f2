// SPDX-License-Identifier: Apache-2.0
// Runs the server with a scripted model (SAKER_FAKE_SERVER, ../clients_script.json), for tests of clients.
const { spawn } = require("node:child_process");
const path = require("node:path");
const readline = require("node:readline");

const PARAMETERS = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
// More tokens than the scripted model's context has.
const TOO_LONG = "a b c d e f g h ".repeat(400);

async function startServer() {
  const script = path.join(__dirname, "..", "clients_script.json");
  const child = spawn(process.env.SAKER_FAKE_SERVER, [script, "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = readline.createInterface({ input: child.stdout });
  const address = await new Promise((resolve, reject) => {
    lines.once("line", resolve);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  const stop = () =>
    new Promise((resolve) => {
      child.removeAllListeners("exit");
      child.once("exit", resolve);
      child.kill("SIGTERM");
    });
  return { address, stop };
}

// The items of a stream.
async function collect(stream) {
  const items = [];
  for await (const item of stream) {
    items.push(item);
  }
  return items;
}

module.exports = { PARAMETERS, TOO_LONG, collect, startServer };
