import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../../ui/button.tsx";
import { Field, Input, Select, TextArea } from "../../ui/fields.tsx";
import { Picker } from "../../ui/picker.tsx";
import style from "../../ui/ui.module.css";
import { reachableQuery } from "../models/api.ts";
import { choiceOf } from "../models/model-choice.ts";
import { OrderList } from "../routing/order-list.tsx";
import { type Way, type Weighted, textIn, wayOf, weightedOf } from "./target.ts";

const ways: readonly (readonly [Way, string])[] = [
  ["order", "One model, or several in order"],
  ["weight", "Several, by weight"],
  ["condition", "By conditions"],
];

interface FieldProps {
  value: string;
  onChange: (text: string) => void;
}

/** Models with a weight each. */
function Weights({
  models,
  onChange,
}: {
  models: readonly Weighted[];
  onChange: (models: readonly Weighted[]) => void;
}) {
  const sum = models.reduce((total, { weight }) => total + weight, 0);
  return (
    <ul className={style.sortable} aria-label="Weights">
      {models.map(({ model, weight }, index) => (
        <li key={model}>
          <span className={style.grow}>
            {model}
            <span className={style.under}>
              {sum > 0 ? `${((weight / sum) * 100).toFixed(0)} % of the requests` : ""}
            </span>
          </span>
          <span className={style.short}>
            <Input
              aria-label={`Weight of ${model}`}
              type="number"
              min="0"
              step="any"
              value={weight}
              onChange={({ target }) =>
                onChange(
                  models.map((each, at) =>
                    at === index ? { model, weight: Number(target.value) } : each,
                  ),
                )
              }
            />
          </span>
          <Button
            look="plain"
            aria-label={`Remove ${model}`}
            onClick={() => onChange(models.filter((_, at) => at !== index))}
          >
            Remove
          </Button>
        </li>
      ))}
    </ul>
  );
}

/** The models of an alias, found by name, in order or with weights. */
function ChosenModels({ way, value, onChange }: FieldProps & { way: "order" | "weight" }) {
  const catalog = useQuery(reachableQuery);
  const models = weightedOf(value);
  const set = (next: readonly Weighted[]): void => onChange(textIn(way, next));
  const items = (catalog.data?.data ?? [])
    .map(choiceOf)
    .filter((choice) => models.every(({ model }) => model !== choice.value));
  return (
    <>
      {models.length === 0 ? null : way === "weight" ? (
        <Weights models={models} onChange={set} />
      ) : (
        <OrderList
          items={models.map(({ model }) => model)}
          label="Models in order"
          onChange={(order) => set(order.map((model) => ({ model, weight: 1 })))}
        />
      )}
      <div>
        <Picker
          label="Catalog"
          value=""
          shown={models.length === 0 ? "Choose a model" : "Add a model"}
          groups={[{ value: "", items }]}
          onChange={(model) => set([...models, { model, weight: 1 }])}
          search="Search models"
          none="No other model has that in its name."
        />
      </div>
    </>
  );
}

/** The models that an alias means: in order, by weight, or by conditions as JSON. */
export function TargetField({ value, onChange }: FieldProps) {
  const [way, setWay] = useState(wayOf(value));
  return (
    <>
      <Field param="target" label="Models">
        {(id) => (
          <Select
            id={id}
            value={way}
            options={ways}
            onChange={(next) => {
              setWay(next);
              onChange(textIn(next, weightedOf(value)));
            }}
          />
        )}
      </Field>
      {way === "condition" ? (
        <Field
          label="Conditions"
          hint='A JSON list, whose first match counts: [{"model": "acme/a", "when": {"tag": "beta"}}, {"model": "acme/b"}]. Conditions are tag, key, header and metadata.'
        >
          {(id) => (
            <TextArea
              id={id}
              value={value}
              required
              rows={8}
              spellCheck={false}
              onChange={(event) => onChange(event.target.value)}
            />
          )}
        </Field>
      ) : (
        <ChosenModels way={way} value={value} onChange={onChange} />
      )}
    </>
  );
}
