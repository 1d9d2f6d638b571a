import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Field, Input, Select } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import {
  changeCustomer,
  createCustomer,
  type Customer,
  type CustomerPlan,
  type WrittenPlan,
} from "./api.ts";

const types = [
  ["rule", "the rule of the configuration"],
  ["free", "free, up to an allowance"],
  ["prepaid", "prepaid, up to its credits"],
  ["postpaid", "postpaid, up to a cap"],
] as const;
const periods = [
  ["day", "a day (UTC)"],
  ["week", "a week, from Monday (UTC)"],
  ["month", "a month (UTC)"],
] as const;

interface Fields {
  externalId: string;
  name: string;
  stripeId: string;
  type: (typeof types)[number][0];
  per: CustomerPlan["per"];
  allowance: string;
  cap: string;
  percent: string;
}

const start = (customer: Customer | undefined): Fields => {
  const plan = customer?.plan;
  return {
    externalId: customer?.external_id ?? "",
    name: customer?.name ?? "",
    stripeId: customer?.stripe_customer_id ?? "",
    type: customer === undefined || !customer.has_own_plan ? "rule" : (plan?.type ?? "rule"),
    per: plan?.per ?? "month",
    allowance: plan?.allowance === null || plan === undefined ? "0" : String(plan?.allowance ?? 0),
    cap: plan?.cap === null || plan === undefined ? "" : String(plan?.cap ?? ""),
    percent: String(Number(((plan?.markup ?? 0) * 100).toFixed(2))),
  };
};

/** Returns the plan of the fields; markups of single models stay as they are. */
function planOf(fields: Fields, customer: Customer | undefined): WrittenPlan | null {
  if (fields.type === "rule") return null;
  const shared = {
    type: fields.type,
    per: fields.per,
    markup: Number((Number(fields.percent) / 100).toFixed(4)),
    ...(customer?.plan && { markup_by_model: { ...customer.plan.markup_by_model } }),
  };
  if (fields.type === "prepaid") return shared;
  const allowance = Number(fields.allowance);
  if (fields.type === "free") return { ...shared, allowance };
  return { ...shared, allowance, cap: fields.cap === "" ? null : Number(fields.cap) };
}

/** The fields of the API that the texts of a draft set. */
const params = { externalId: "external_id", name: "name", stripeId: "stripe_customer_id" } as const;

/** Creates a customer, or changes one and its plan. */
export function CustomerForm({
  customer,
  onDone,
}: {
  customer?: Customer | undefined;
  onDone: () => void;
}) {
  const [fields, setFields] = useState(() => start(customer));
  const set = (changes: Partial<Fields>): void => setFields({ ...fields, ...changes });
  const save = useMutation({
    meta: { done: "Customer saved" },
    mutationFn: () => {
      const plan = planOf(fields, customer);
      const stripe = { stripe_customer_id: fields.stripeId === "" ? null : fields.stripeId };
      const named = fields.name === "" ? {} : { name: fields.name };
      return customer === undefined
        ? createCustomer({ external_id: fields.externalId, plan, ...named, ...stripe })
        : changeCustomer({ id: customer.id, plan, ...named, ...stripe });
    },
    onSuccess: onDone,
  });
  const text = (name: "externalId" | "name" | "stripeId", label: string, hint?: string) => (
    <Field param={params[name]} label={label} {...(hint === undefined ? {} : { hint })}>
      {(id) => (
        <Input
          id={id}
          value={fields[name]}
          required={name === "externalId"}
          onChange={({ target }) => set({ [name]: target.value })}
        />
      )}
    </Field>
  );
  const amount = (name: "allowance" | "cap" | "percent", label: string, hint?: string) => (
    <Field label={label} {...(hint === undefined ? {} : { hint })}>
      {(id) => (
        <Input
          id={id}
          type="number"
          step="any"
          required={name !== "cap"}
          value={fields[name]}
          onChange={({ target }) => set({ [name]: target.value })}
        />
      )}
    </Field>
  );
  const { type } = fields;
  return (
    <Form
      action={customer === undefined ? "Create customer" : "Save customer"}
      work={save}
      onSubmit={() => save.mutate()}
    >
      {customer !== undefined
        ? null
        : text(
            "externalId",
            "External id",
            "What requests name it by, such as its account number.",
          )}
      {text("name", "Name")}
      <Field label="Plan">
        {(id) => (
          <Select id={id} value={type} options={types} onChange={(each) => set({ type: each })} />
        )}
      </Field>
      {type === "rule" ? null : (
        <>
          {type === "prepaid" ? null : (
            <Field label="Period">
              {(id) => (
                <Select
                  id={id}
                  value={fields.per}
                  options={periods}
                  onChange={(per) => set({ per })}
                />
              )}
            </Field>
          )}
          {type === "prepaid" ? null : amount("allowance", "Allowance in USD, not billed")}
          {type === "postpaid" ? amount("cap", "Cap in USD", "Empty bills without a bound.") : null}
          {amount("percent", "Markup in percent of the cost")}
        </>
      )}
      {type === "postpaid" ? text("stripeId", "Customer at Stripe", "Such as cus_123.") : null}
    </Form>
  );
}
