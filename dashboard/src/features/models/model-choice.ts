import { count, unitPrice } from "../../lib/format.ts";
import { wordOf } from "../../lib/words.ts";
import type { Choice } from "../../ui/picker-popup.tsx";
import type { Model } from "./api.ts";

/** Capabilities by which people choose. */
const chosenBy = ["vision", "function-calling", "reasoning", "structured-output"];

function priceOf({ pricing }: Model): string {
  const { input_per_1m: input, output_per_1m: output, billing } = pricing;
  if (billing === "byok") return "own key";
  if (input === 0 && output === 0) return "free";
  return input === undefined && output === undefined
    ? ""
    : `${unitPrice(input)} in, ${unitPrice(output)} out per 1M`;
}

/** A model as a choice: its price, context and capabilities in words. */
export const choiceOf = (model: Model): Choice => ({
  value: model.id,
  label: model.id,
  note: [
    model.context_length > 0 ? `${count(model.context_length)} context` : "",
    ...model.capabilities.filter((each) => chosenBy.includes(each)).map(wordOf),
    model.providers.length > 1 ? `${model.providers.length} providers` : "",
  ]
    .filter((part) => part !== "")
    .join(" · "),
  price: priceOf(model),
});
