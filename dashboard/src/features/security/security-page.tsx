import { zoneName } from "../../lib/time.ts";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { countOf } from "../../lib/format.ts";
import { useScope } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Check, Field, Input } from "../../ui/fields.tsx";
import { Confirm, Form } from "../../ui/form.tsx";
import { Empty, Loaded, Problem } from "../../ui/loaded.tsx";
import { Moment, Name } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import {
  type Privacy,
  addRange,
  changePrivacy,
  credentialsQuery,
  privacyQuery,
  rangesQuery,
  removeRange,
} from "./api.ts";
import { ProvidersField } from "../provider-keys/providers-field.tsx";
import { AuditLog } from "./audit.tsx";

const words = {
  no_expiry: "no expiry",
  unused: "unused for 90 days",
  no_spending_limit: "no spending cap",
} as const;

function Allowlist({ mayWrite }: { mayWrite: boolean }) {
  const queries = useQueryClient();
  const ranges = useQuery(rangesQuery);
  const [cidr, setCidr] = useState("");
  const [note, setNote] = useState("");
  const [confirm, setConfirm] = useState(false);
  const refresh = (): Promise<void> =>
    queries.invalidateQueries({ queryKey: ["security", "ranges"] });
  const add = useMutation({
    meta: { done: "Address allowed" },
    mutationFn: () => addRange({ cidr, description: note === "" ? null : note, confirm }),
    onSuccess: () => {
      setCidr("");
      setNote("");
      return refresh();
    },
  });
  const remove = useMutation({
    meta: { done: "Address removed" },
    mutationFn: removeRange,
    onSuccess: refresh,
  });
  return (
    <Card title="Allowed addresses" flush>
      <Loaded query={ranges} height={120}>
        {({ data: rows, your_address: own }) => (
          <>
            {rows.length === 0 ? (
              <Empty>
                Every address may use this workspace. The first entry refuses all others.
              </Empty>
            ) : (
              <Table
                rows={rows}
                rowKey={({ id }) => id}
                caption="Allowed addresses"
                columns={[
                  {
                    head: "Range",
                    phone: "title",
                    cell: (range) => <code>{range.cidr}</code>,
                  },
                  {
                    head: "Note",
                    phone: "note",
                    cell: ({ description }) =>
                      description ?? <span className={style.notOnPhone}>–</span>,
                  },
                  {
                    head: `Since, ${zoneName()}`,
                    phone: "when",
                    cell: ({ created_at: at }) => <Moment at={at} />,
                  },
                  {
                    head: "Actions",
                    phone: "actions",
                    cell: ({ id }) =>
                      mayWrite ? (
                        <Button look="plain" onClick={() => remove.mutate({ id, confirm })}>
                          Remove
                        </Button>
                      ) : null,
                  },
                ]}
              />
            )}
            {remove.error === null ? null : <Problem error={remove.error} />}
            {!mayWrite ? null : (
              <div className={style.cardBody}>
                <Form
                  look="plain"
                  action="Allow range"
                  work={add}
                  onSubmit={() => add.mutate()}
                  more={
                    <Button look="plain" onClick={() => setCidr(own)}>
                      Use your address
                    </Button>
                  }
                >
                  <p>
                    You come from <code>{own}</code>. An entry that shuts it out is refused, unless
                    you confirm it.
                  </p>
                  <div className={style.grid}>
                    <Field param="cidr" label="Address or range">
                      {(id) => (
                        <Input
                          id={id}
                          value={cidr}
                          required
                          placeholder="203.0.113.0/24"
                          onChange={(event) => setCidr(event.target.value)}
                        />
                      )}
                    </Field>
                    <Field param="description" label="Note">
                      {(id) => (
                        <Input
                          id={id}
                          value={note}
                          maxLength={500}
                          onChange={(event) => setNote(event.target.value)}
                        />
                      )}
                    </Field>
                  </div>
                  <Check
                    label="Allow it although my own address is shut out"
                    checked={confirm}
                    onChange={setConfirm}
                  />
                </Form>
              </div>
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}

/** What keeping prompts and answers means, or why it cannot be turned on. */
function keepingHint({ privacy, zdr }: { privacy: Privacy; zdr: boolean }): string {
  if (zdr)
    return "Not with zero retention, which keeps nothing. Turning that on deletes what is kept.";
  return (
    `The gateway keeps the request and the answer of each request of chat, pictures and sound from now on, encrypted, for ${countOf(privacy.content_days, "day")}. ` +
    "Who may read the security settings may read them. Requests with zero retention or store: false are never kept."
  );
}

function PrivacyForm({ privacy, mayWrite }: { privacy: Privacy; mayWrite: boolean }) {
  const queries = useQueryClient();
  const [zdr, setZdr] = useState(privacy.zdr);
  const [blocked, setBlocked] = useState<readonly string[]>(privacy.blocked_providers);
  const [keeps, setKeeps] = useState(privacy.keep_contents);
  const [isAsking, setAsking] = useState(false);
  const keepsThen = keeps && !zdr;
  const isChanged = keepsThen !== privacy.keep_contents;
  const save = useMutation({
    meta: { done: "Privacy saved" },
    mutationFn: () =>
      changePrivacy({
        zdr,
        blocked_providers: [...blocked],
        ...(isChanged && { keep_contents: keepsThen }),
      }),
    onSuccess(saved) {
      setAsking(false);
      setKeeps(saved.keep_contents);
      return queries.invalidateQueries({ queryKey: ["security", "privacy"] });
    },
  });
  return (
    <>
      <Form
        action="Save privacy"
        work={isAsking ? { ...save, error: null } : save}
        onSubmit={() => (isChanged && !keepsThen ? setAsking(true) : save.mutate())}
        disabled={!mayWrite}
      >
        <Check
          label="Zero retention only"
          checked={zdr}
          disabled={!mayWrite}
          onChange={setZdr}
          hint="Requests go to providers alone that keep nothing of them."
        />
        <Check
          label="Keep prompts and answers"
          checked={keepsThen}
          disabled={!mayWrite || zdr}
          onChange={setKeeps}
          hint={keepingHint({ privacy, zdr })}
        />
        <ProvidersField
          label="Blocked providers"
          hint="They never serve this workspace."
          value={blocked}
          onChange={setBlocked}
          readOnly={!mayWrite}
        />
      </Form>
      <Confirm
        title="Delete kept prompts and answers"
        open={isAsking}
        onClose={() => setAsking(false)}
        onConfirm={() => save.mutate()}
        action="Save and delete"
        work={save}
      >
        <p>
          Nobody can read the kept prompts and answers of this workspace any more, and the gateway
          deletes them. Turning it on again does not bring them back.
        </p>
      </Confirm>
    </>
  );
}

function Findings() {
  const credentials = useQuery(credentialsQuery);
  return (
    <Card title="Keys worth a look" flush actions={<Link to="/keys">All keys</Link>}>
      <Loaded query={credentials} height={96}>
        {({ data }) => {
          const rows = data.filter(({ findings }) => findings.length > 0);
          return rows.length === 0 ? (
            <Empty>Every key ends, is used and has a cap.</Empty>
          ) : (
            <Table
              rows={rows}
              rowKey={({ id }) => id}
              caption="Keys worth a look"
              columns={[
                {
                  head: "Key",
                  phone: "title",
                  cell: ({ name, label }) => (
                    <>
                      <Name>{name}</Name>
                      <code>{label}</code>
                    </>
                  ),
                },
                {
                  head: "Kind",
                  cell: ({ kind }) => (kind === "llm" ? "LLM key" : "management key"),
                },
                {
                  head: "Last used",
                  phone: "figure",
                  lead: "used",
                  cell: ({ last_used_at: at }) => <Moment at={at} never="never" dayOnly />,
                },
                {
                  head: "Why",
                  phone: "when",
                  cell: ({ findings }) => findings.map((finding) => words[finding]).join(", "),
                },
              ]}
            />
          );
        }}
      </Loaded>
    </Card>
  );
}

/**
 * What keeps the workspace safe: addresses, what is demanded of providers, keys worth a look, and
 * the audit log.
 */
export function SecurityPage() {
  const mayWrite = useScope("write:security");
  const privacy = useQuery(privacyQuery);
  return (
    <>
      <PageHead title="Security" />
      <Findings />
      <Allowlist mayWrite={mayWrite} />
      <Card title="Privacy">
        <Loaded query={privacy} height={160}>
          {(data) => <PrivacyForm privacy={data} mayWrite={mayWrite} />}
        </Loaded>
      </Card>
      <AuditLog />
    </>
  );
}
