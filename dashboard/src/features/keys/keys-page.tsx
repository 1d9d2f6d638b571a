import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Suspense, lazy, useState } from "react";
import { useScope } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { countOf, usd } from "../../lib/format.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { Field, Input, Select } from "../../ui/fields.tsx";
import { Confirm } from "../../ui/form.tsx";
import { Empty, Loaded, Problem } from "../../ui/loaded.tsx";
import { Moment, Name, Status } from "../../ui/values.tsx";
import { Bar } from "../../ui/bar.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { RowMenu } from "../../ui/row-menu.tsx";
import { Table } from "../../ui/table.tsx";
import { say } from "../../ui/toast.ts";
import style from "../../ui/ui.module.css";
import { ManagementKeysCard } from "../management-keys/management-keys-card.tsx";
import { changeKey, deleteKey, keysQuery, rotateKey, type Key, type MadeKey } from "./api.ts";
import { useNames } from "../usage/use-names.ts";
import { KeyForm } from "./key-form.tsx";

// Loaded with its first use.
const KeyAccess = lazy(async () => ({ default: (await import("./key-access.tsx")).KeyAccess }));

const clients = [
  ["curl", "curl"],
  ["openai", "OpenAI SDK (TypeScript)"],
  ["python", "OpenAI SDK (Python)"],
  ["anthropic", "Anthropic SDK (TypeScript)"],
  ["ai-sdk", "AI SDK"],
  ["claude", "Claude Code"],
  ["codex", "Codex"],
] as const;

/** What to paste where, by client, as the README has it. */
function snippetFor(client: string, secret: string): string {
  const { origin } = location;
  if (client === "openai")
    return `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: "${origin}/api/v1", apiKey: "${secret}" });`;
  if (client === "python")
    return `from openai import OpenAI\n\nclient = OpenAI(base_url="${origin}/api/v1", api_key="${secret}")`;
  if (client === "anthropic") {
    return `import Anthropic from "@anthropic-ai/sdk";\n\nconst client = new Anthropic({ baseURL: "${origin}", authToken: "${secret}", apiKey: null });`;
  }
  if (client === "ai-sdk") {
    return `import { createOpenAICompatible } from "@ai-sdk/openai-compatible";\n\nconst provider = createOpenAICompatible({ name: "switchyard", baseURL: "${origin}/api/v1", apiKey: "${secret}" });`;
  }
  if (client === "claude")
    return `export ANTHROPIC_BASE_URL=${origin}\nexport ANTHROPIC_AUTH_TOKEN=${secret}\nclaude`;
  if (client === "codex") {
    return `# ~/.codex/config.toml\nmodel_provider = "switchyard"\n[model_providers.switchyard]\nname = "Switchyard"\nbase_url = "${origin}/v1"\nenv_key = "SWITCHYARD_KEY"\nwire_api = "responses"\n\n# shell\nexport SWITCHYARD_KEY=${secret}\ncodex`;
  }
  return `curl ${origin}/api/v1/chat/completions \\\n  -H "Authorization: Bearer ${secret}" -H "Content-Type: application/json" \\\n  -d '{"model":"service/auto","messages":[{"role":"user","content":"Hello"}]}'`;
}

/** A secret that is shown this once, with what to paste where. */
function SecretOnce({ secret, onDone }: { secret: string; onDone: () => void }) {
  const [client, setClient] = useState<string>("curl");
  return (
    <>
      <p>Copy the key now. It is not shown again; a lost key is rotated.</p>
      <Code text={secret} label="Copy key" />
      <Field label="Use it with">
        {(id) => <Select id={id} value={client} options={clients} onChange={setClient} />}
      </Field>
      <Code text={snippetFor(client, secret)} />
      <Actions>
        <Button onClick={onDone}>I have copied it</Button>
      </Actions>
    </>
  );
}

const graces = [
  ["0", "fails at once"],
  ["3600", "works for another hour"],
  ["86400", "works for another day"],
  ["604800", "works for another week"],
] as const;

type Act = "access" | "edit" | "child" | "rotate" | "delete";

const stateOf = ({ disabled, expires_at: end }: Key) =>
  disabled ? "disabled" : end !== null && Date.parse(end) <= Date.now() ? "expired" : "active";

/** Keys that another one made come below it. */
function folded(keys: readonly Key[], text: string): Key[] {
  const wanted = keys.filter(({ name, label }) =>
    `${name} ${label}`.toLowerCase().includes(text.toLowerCase()),
  );
  const ids = new Set(wanted.map(({ id }) => id));
  const tops = wanted.filter(
    ({ parent_key_id: parent }) => parent === undefined || !ids.has(parent),
  );
  return tops.flatMap((top) => [
    top,
    ...wanted.filter(({ parent_key_id: parent }) => parent === top.id),
  ]);
}

function Cap({ of: { name, limit, limit_remaining: left, limit_reset: reset } }: { of: Key }) {
  if (limit === null) return <>no cap</>;
  const spent = limit - (left ?? 0);
  return (
    <>
      <div>
        {usd(spent)} of {usd(limit)}
        {reset === null ? "" : `, ${reset}`}
      </div>
      <Bar label={name} share={limit === 0 ? 1 : spent / limit} />
    </>
  );
}

function limitsOf({ allowed_models: models, tpm }: Key): string {
  const parts = [
    models === null ? "" : countOf(models.length, "model"),
    tpm === null ? "" : `${countOf(tpm, "token")} a minute`,
  ].filter((part) => part !== "");
  return parts.length === 0 ? "any model" : parts.join(", ");
}

/** Keys of the workspace: who spends what, up to which cap, and what each may be used for. */
export function KeysPage() {
  const mayWrite = useScope("write:llm-keys");
  const seesManagement = useScope("read:management-keys");
  const queries = useQueryClient();
  const keys = useQuery(keysQuery);
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<MadeKey>();
  const [chosen, setChosen] = useState<{ act: Act; of: Key }>();
  const [text, setText] = useState("");
  const [grace, setGrace] = useState("0");
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["keys"] });
  const close = (): void => {
    setMaking(false);
    setChosen(undefined);
  };
  const done = (): void => {
    close();
    void refresh();
  };
  const shown = (result: MadeKey): void => {
    done();
    setMade(result);
  };
  const change = useMutation({
    mutationFn: ({ hash, disabled }: { hash: string; disabled: boolean }) =>
      changeKey(hash, { disabled }),
    onSuccess: (_, { hash, disabled }) => {
      say(disabled ? "Key disabled" : "Key enabled", () => turn(hash, !disabled));
      return refresh();
    },
  });
  const turn = (hash: string, disabled: boolean): void => change.mutate({ hash, disabled });
  const rotate = useMutation({ mutationFn: rotateKey, onSuccess: shown });
  const remove = useMutation({
    meta: { done: "Key deleted" },
    mutationFn: deleteKey,
    onSuccess: done,
  });
  const names = useNames(["person"]);
  const create = mayWrite ? <Button onClick={() => setMaking(true)}>Create key</Button> : null;
  const of = chosen?.of;
  const opens = (act: Act): boolean => chosen?.act === act;
  const changesOf = (key: Key): (readonly [string, () => void])[] => [
    ["Edit", () => setChosen({ act: "edit", of: key })],
    [key.disabled ? "Enable" : "Disable", () => turn(key.hash, !key.disabled)],
    ["Rotate", () => setChosen({ act: "rotate", of: key })],
    ...(key.parent_key_id === undefined
      ? [["Add child", () => setChosen({ act: "child", of: key })] as const]
      : []),
    ["Delete", () => setChosen({ act: "delete", of: key })],
  ];
  const actionsOf = (key: Key) => (
    <RowMenu
      label={`Actions of ${key.name}`}
      actions={[
        ["Who can use it", () => setChosen({ act: "access", of: key })],
        ...(mayWrite ? changesOf(key) : []),
      ]}
    />
  );
  return (
    <>
      <PageHead title="Keys">{create}</PageHead>
      {change.error === null ? null : <Problem error={change.error} />}
      <Card flush>
        <Loaded query={keys} height={320}>
          {({ data: rows }) =>
            rows.length === 0 ? (
              <Empty action={create}>
                No key yet. Programs send one with each request; each has its own cap and figures.
              </Empty>
            ) : (
              <>
                <div className={style.filters}>
                  <Input
                    type="search"
                    aria-label="Search keys"
                    placeholder="Search keys"
                    value={text}
                    onChange={(event) => setText(event.target.value)}
                  />
                </div>
                {folded(rows, text).length === 0 ? (
                  <Empty
                    action={
                      <Button look="plain" onClick={() => setText("")}>
                        Clear the search
                      </Button>
                    }
                  >
                    No key matches.
                  </Empty>
                ) : (
                  <Table
                    rows={folded(rows, text)}
                    rowKey={({ id }) => id}
                    caption="Keys"
                    columns={[
                      {
                        head: "Name",
                        phone: "title",
                        cell: ({ name, label, parent_key_id: parent }) => (
                          <>
                            <Name>{`${parent === undefined ? "" : "↳ "}${name}`}</Name>
                            <code>{label}</code>
                          </>
                        ),
                      },
                      {
                        head: "State",
                        phone: "state",
                        cell: (key) => (
                          <>
                            <Status kind={stateOf(key) === "active" ? "good" : "warning"}>
                              {stateOf(key)}
                            </Status>
                            {key.operator ? <div>operator</div> : null}
                          </>
                        ),
                      },
                      { head: "Cap", cell: (key) => <Cap of={key} /> },
                      {
                        head: "30 days",
                        phone: "figure",
                        unit: "in 30 d",
                        number: true,
                        cell: ({ id, real_usage_monthly: spent }) => (
                          <Link to="/activity" search={{ key_id: id }}>
                            {usd(spent)}
                          </Link>
                        ),
                      },
                      { head: "May use", offTablet: true, cell: limitsOf },
                      {
                        head: "Owner",
                        wide: true,
                        cell: ({ creator_user_id: owner }) => (
                          <Name>{names.people.get(owner) ?? "–"}</Name>
                        ),
                      },
                      {
                        head: "Last used",
                        offTablet: true,
                        phone: "when",
                        lead: "used",
                        cell: ({ last_used_at: at }) => <Moment at={at} never="never" dayOnly />,
                      },
                      {
                        head: "Expires",
                        wide: true,
                        cell: ({ expires_at: at }) => <Moment at={at} never="never" dayOnly />,
                      },
                      { head: "Actions", phone: "actions", cell: actionsOf },
                    ]}
                  />
                )}
              </>
            )
          }
        </Loaded>
      </Card>
      {seesManagement ? <ManagementKeysCard /> : null}
      <Suspense fallback={null}>
        {opens("access") ? (
          <KeyAccess of={of} owner={of && names.people.get(of.creator_user_id)} onClose={close} />
        ) : null}
      </Suspense>
      <Modal title="Create key" open={isMaking} onClose={close}>
        <KeyForm onMade={shown} onChanged={done} />
      </Modal>
      <Modal title={`Edit ${of?.name ?? ""}`} open={opens("edit")} onClose={close}>
        <KeyForm changed={of} onMade={shown} onChanged={done} />
      </Modal>
      <Modal title={`Key below ${of?.name ?? ""}`} open={opens("child")} onClose={close}>
        <KeyForm parent={of} onMade={shown} onChanged={done} />
      </Modal>
      <Modal title="Your key" open={made !== undefined} onClose={() => setMade(undefined)} keepOpen>
        {made === undefined ? null : (
          <SecretOnce secret={made.key} onDone={() => setMade(undefined)} />
        )}
      </Modal>
      <Confirm
        title={`Rotate ${of?.name ?? ""}`}
        open={opens("rotate")}
        onClose={close}
        action="Rotate key"
        work={rotate}
        onConfirm={() => of && rotate.mutate({ hash: of.hash, graceSeconds: Number(grace) })}
      >
        <p>It gets another secret, which is shown once. Limits and records stay.</p>
        <Field label="The old secret">
          {(id) => <Select id={id} value={grace} options={graces} onChange={setGrace} />}
        </Field>
      </Confirm>
      <Confirm
        title={`Delete ${of?.name ?? ""}`}
        open={opens("delete")}
        onClose={close}
        action="Delete key"
        work={remove}
        onConfirm={() => of && remove.mutate(of.hash)}
      >
        <p>
          Requests with this key, and with keys that it made, fail at once. What it spent stays in
          the records.
        </p>
      </Confirm>
    </>
  );
}
