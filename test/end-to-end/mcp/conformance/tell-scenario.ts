/**
 * The client that the conformance suite runs for each scenario: tells the test's own process, whose
 * port is the first argument, what to play, and ends as that did. It loads nothing, since the suite
 * starts dozens at once.
 */
const [port, url] = process.argv.slice(2);
const answer = await fetch(`http://127.0.0.1:${port}/`, {
  method: "POST",
  body: JSON.stringify({
    url,
    scenario: process.env["MCP_CONFORMANCE_SCENARIO"],
    context: JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}") as unknown,
  }),
});
console.log(await answer.text());
process.exit(answer.ok ? 0 : 1);

export {};
