import { Suspense, lazy, useState } from "react";
import { count, unitPrice } from "../../lib/format.ts";
import type { Model } from "./api.ts";
import own from "./model-picker.module.css";

const load = () => import("./model-picker-popup.tsx");
// Loaded when a person comes near it: most go on with the model that is suggested.
const Popup = lazy(async () => ({ default: (await load()).ModelPickerPopup }));

/** A name that a request may have in its field `model`, with what speaks for or against it. */
export interface Choice {
  /** The name in a request. */
  value: string;
  label: string;
  /** Shown below the name: context and capabilities, or what a preset is for. */
  note: string;
  price: string;
}

/** Choices under a heading, as the combobox takes them. */
export interface ChoiceGroup {
  value: string;
  items: readonly Choice[];
}

const capabilityWords: Readonly<Record<string, string>> = {
  vision: "pictures",
  "function-calling": "tools",
  reasoning: "thinking",
  "structured-output": "JSON by schema",
};

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
    ...model.capabilities.flatMap((each) => capabilityWords[each] ?? []),
    model.providers.length > 1 ? `${model.providers.length} providers` : "",
  ]
    .filter((part) => part !== "")
    .join(" · "),
  price: priceOf(model),
});

/** What is chosen, and what there is to choose from. */
export interface ModelPickerProps {
  label: string;
  value: string;
  groups: readonly ChoiceGroup[];
  onChange: (value: string) => void;
}

/** The name that is chosen, on the button that opens the list. */
export const Chosen = ({ value }: { value: string }) => (
  <>
    <span className={own["name"]}>{value === "" ? "Choose a model" : value}</span>
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <path d="M4 6l4 4 4-4" fill="none" stroke="currentColor" strokeWidth="1.6" />
    </svg>
  </>
);

/** Chooses a model or preset by a few letters of its name, with price and context beside it. */
export function ModelPicker(props: ModelPickerProps) {
  const { label, value } = props;
  const [isOpened, setOpened] = useState(false);
  const closed = (
    <button
      type="button"
      role="combobox"
      aria-expanded="false"
      aria-haspopup="listbox"
      aria-controls={undefined}
      className={own["trigger"]}
      aria-label={`${label}: ${value}`}
      onPointerEnter={() => void load()}
      onFocus={() => void load()}
      onClick={() => setOpened(true)}
    >
      <Chosen value={value} />
    </button>
  );
  return isOpened ? (
    <Suspense fallback={closed}>
      <Popup {...props} />
    </Suspense>
  ) : (
    closed
  );
}
