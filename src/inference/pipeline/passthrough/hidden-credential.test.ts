import { expect, test } from "bun:test";
import { HiddenCredential } from "./hidden-credential.ts";

test("a credential is hidden wherever the pieces of an answer are cut, and nothing else is changed", () => {
  const text = "sk-s sk-sk-secret, and sk-secretsk-secre";
  const hidden = "sk-s sk-*********, and *********sk-secre";
  for (let first = 0; first <= text.length; first += 1)
    for (let second = first; second <= text.length; second += 1) {
      const hiding = new HiddenCredential("sk-secret");
      const cuts = [text.slice(0, first), text.slice(first, second), text.slice(second)];
      const sent = [...cuts.map((cut) => hiding.next(Buffer.from(cut))), hiding.end()];
      expect(Buffer.concat(sent).toString()).toBe(hidden);
    }
});

test("what cannot begin the credential is sent at once", () => {
  const hiding = new HiddenCredential("sk-secret");
  expect(Buffer.from(hiding.next(Buffer.from("data: 1\n\n"))).toString()).toBe("data: 1\n\n");
  expect(Buffer.from(hiding.next(Buffer.from("ask"))).toString()).toBe("a");
});
