import { expect, test } from "bun:test";
import { mergeExpositions } from "./merge-expositions.ts";

const text = (count: number): string =>
  `# HELP a_total Of a.
# TYPE a_total counter
a_total{x="1",y="}"} ${count}
# HELP b Of b.
# TYPE b gauge
b ${count}
b{} ${count}
`;

test("mergeExpositions writes each family once, with a process label on its samples", () => {
  expect(
    mergeExpositions([
      { process: "1", text: text(1) },
      { process: "2", text: text(2) },
      { process: "3", text: "" },
    ]),
  ).toBe(`# HELP a_total Of a.
# TYPE a_total counter
a_total{process="1",x="1",y="}"} 1
a_total{process="2",x="1",y="}"} 2

# HELP b Of b.
# TYPE b gauge
b{process="1"} 1
b{process="1"} 1
b{process="2"} 2
b{process="2"} 2
`);
});
