import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { PageHead } from "../../ui/page.tsx";
import { useSession } from "../../lib/session.ts";
import { type Theme, chooseTheme, chosenTheme } from "../../lib/theme.ts";
import { chooseTimeZone, timeZone, zoneName } from "../../lib/time.ts";
import { Button } from "../../ui/button.tsx";
import { Card, Facts } from "../../ui/card.tsx";
import { Check, Field, Input, Select } from "../../ui/fields.tsx";
import { Confirm, Form } from "../../ui/form.tsx";
import { Loaded, Problem, Skeleton } from "../../ui/loaded.tsx";
import { Moment, Status } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import {
  authRequest,
  deleteAccount,
  endOtherSessions,
  endSession,
  rename,
  sessionsQuery,
} from "./api.ts";
import { changePreferences, preferencesQuery } from "./preferences.ts";
import { deviceOf } from "../../lib/device.ts";
import { SignInCard } from "./sign-in-card.tsx";

const themes = [
  ["system", "of the system"],
  ["light", "light"],
  ["dark", "dark"],
] as const;
const isTheme = (value: unknown): value is Theme =>
  value === "system" || value === "light" || value === "dark";

function PreferencesForm({ kept }: { kept: Readonly<Record<string, unknown>> }) {
  const queries = useQueryClient();
  const [theme, setTheme] = useState<Theme>(isTheme(kept["theme"]) ? kept["theme"] : chosenTheme());
  const [zone, setZone] = useState(typeof kept["time_zone"] === "string" ? kept["time_zone"] : "");
  const save = useMutation({
    meta: { done: "Preferences saved" },
    mutationFn: () => changePreferences({ theme, time_zone: zone === "" ? null : zone }),
    onSuccess: (preferences) => {
      chooseTheme(theme);
      chooseTimeZone(zone === "" ? undefined : zone);
      queries.setQueryData(preferencesQuery.queryKey, preferences);
    },
  });
  const zones = ["UTC", ...Intl.supportedValuesOf("timeZone")].map((name) => [name, name] as const);
  return (
    <Form action="Save preferences" work={save} onSubmit={() => save.mutate()}>
      <div className={style.grid}>
        <Field label="Theme">
          {(id) => (
            <Select
              id={id}
              value={theme}
              options={themes}
              onChange={(value) => {
                if (isTheme(value)) setTheme(value);
              }}
            />
          )}
        </Field>
        <Field label="Time zone" hint={`Now ${timeZone()}. Days of usage and budgets stay UTC.`}>
          {(id) => (
            <Select
              id={id}
              value={zone}
              options={[["", "of the browser"], ...zones]}
              onChange={setZone}
            />
          )}
        </Field>
      </div>
    </Form>
  );
}

function Sessions() {
  const queries = useQueryClient();
  const sessions = useQuery(sessionsQuery);
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["sessions"] });
  const end = useMutation({
    meta: { done: "Session ended" },
    mutationFn: endSession,
    onSuccess: refresh,
  });
  const endOthers = useMutation({
    meta: { done: "All other sessions ended" },
    mutationFn: endOtherSessions,
    onSuccess: refresh,
  });
  const failed = end.error ?? endOthers.error;
  return (
    <Card
      title="Sessions"
      flush
      actions={
        <Button look="plain" onClick={() => endOthers.mutate()}>
          End all others
        </Button>
      }
    >
      {failed === null ? null : <Problem error={failed} />}
      <Loaded query={sessions} height={200}>
        {({ data: rows }) => (
          <Table
            rows={rows}
            rowKey={({ id }) => id}
            caption="Sessions"
            columns={[
              {
                head: "Device",
                phone: "title",
                cell: ({ user_agent: agent }) => (
                  <span className={style.name} title={agent ?? undefined}>
                    {deviceOf(agent)}
                  </span>
                ),
              },
              { head: "Address", phone: "figure", cell: ({ address }) => address ?? "–" },
              {
                head: `Began, ${zoneName()}`,
                phone: "when",
                cell: ({ created_at: at }) => <Moment at={at} />,
              },
              {
                head: "Actions",
                phone: "state",
                cell: ({ id, current }) =>
                  current ? (
                    <Status kind="good">this one</Status>
                  ) : (
                    <Button look="plain" onClick={() => end.mutate(id)}>
                      End session
                    </Button>
                  ),
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

function DeleteAccount({ email }: { email: string }) {
  const [isOpen, setOpen] = useState(false);
  const [password, setPassword] = useState("");
  const [givesUp, setGivesUp] = useState(false);
  const remove = useMutation({
    mutationFn: () => deleteAccount({ confirm: givesUp, ...(password === "" ? {} : { password }) }),
    onSuccess: () => location.assign("/sign-in"),
  });
  return (
    <Card title="Delete account">
      <Button look="plain" onClick={() => setOpen(true)}>
        Delete account
      </Button>
      <Confirm
        title="Delete your account"
        open={isOpen}
        onClose={() => setOpen(false)}
        action="Delete account"
        work={remove}
        typed={email}
        onConfirm={() => remove.mutate()}
      >
        <p>
          Your personal workspace closes: its keys fail at once. Organisations without another
          member close as well. Records stay.
        </p>
        <Field label="Your password">
          {(id) => (
            <Input
              id={id}
              type="password"
              autoComplete="current-password"
              value={password}
              onChange={(event) => setPassword(event.target.value)}
            />
          )}
        </Field>
        <Check
          label="Give up what is left of the credits"
          checked={givesUp}
          onChange={setGivesUp}
        />
      </Confirm>
    </Card>
  );
}

function ChangeEmail({ email }: { email: string }) {
  const [wanted, setWanted] = useState("");
  const [password, setPassword] = useState("");
  const change = useMutation({
    mutationFn: () =>
      authRequest("POST", "/change-email", {
        new_email: wanted,
        ...(password === "" ? {} : { password }),
      }),
  });
  return (
    <details>
      <summary>Change the e-mail address</summary>
      <Form look="plain" action="Change address" work={change} onSubmit={() => change.mutate()}>
        <div className={style.grid}>
          <Field
            label="New address"
            hint={`Now ${email}. It changes once the link that is mailed there was used.`}
          >
            {(id) => (
              <Input
                id={id}
                type="email"
                required
                value={wanted}
                onChange={(event) => setWanted(event.target.value)}
              />
            )}
          </Field>
          <Field label="Password of the account">
            {(id) => (
              <Input
                id={id}
                type="password"
                autoComplete="current-password"
                value={password}
                onChange={(event) => setPassword(event.target.value)}
              />
            )}
          </Field>
        </div>
        {change.isSuccess ? <p role="status">A link was sent to {wanted}.</p> : null}
      </Form>
    </details>
  );
}

function Name({ name }: { name: string }) {
  const queries = useQueryClient();
  const [text, setText] = useState(name);
  const save = useMutation({
    meta: { done: "Name changed" },
    mutationFn: () => rename(text),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["session"] }),
  });
  return (
    <Form inline look="plain" action="Rename" work={save} onSubmit={() => save.mutate()}>
      <Field param="name" label="Name">
        {(id) => (
          <Input
            id={id}
            value={text}
            required
            maxLength={200}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
    </Form>
  );
}

/** The person's own account: who they are, how they sign in, from where, and what they prefer. */
export function AccountPage() {
  const { data: session } = useSession();
  const preferences = useQuery(preferencesQuery);
  return (
    <>
      <PageHead title="Your account" />
      <Card title="Person">
        {session === undefined ? (
          <Skeleton height={160} />
        ) : (
          <div className={style.stack}>
            <Facts
              rows={[
                ["E-mail", session.user.email],
                ["Role in this workspace", session.workspace.role],
                ["Operator", session.user.operator ? "yes" : "no"],
              ]}
            />
            <Name key={session.user.name} name={session.user.name} />
            <ChangeEmail email={session.user.email} />
          </div>
        )}
      </Card>
      <Card title="Preferences">
        <Loaded query={preferences} height={140}>
          {(kept) => <PreferencesForm kept={kept} />}
        </Loaded>
      </Card>
      <SignInCard />
      <Sessions />
      {session === undefined ? null : <DeleteAccount email={session.user.email} />}
    </>
  );
}
