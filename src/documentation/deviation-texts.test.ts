import { expect, test } from "bun:test";
import { deviationNames } from "../inference/providers/provider-definition.ts";
import { deviationsPage, deviationTexts } from "./deviation-texts.ts";

test("the page has every name that deviations: takes, and no other", () => {
  const named = deviationNames.filter((name) => !name.startsWith("refuses_"));
  expect(Object.keys(deviationTexts).toSorted()).toEqual(named.toSorted());
  const page = deviationsPage();
  for (const name of deviationNames) expect(page).toContain(`\`${name}\``);
});
