import { zoneName } from "../../lib/time.ts";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Actions, Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Field, Input } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { Loaded, Problem } from "../../ui/loaded.tsx";
import { Moment, Status } from "../../ui/values.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { Table } from "../../ui/table.tsx";
import { type Way, addPasskey, authRequest, methodsQuery, unlink } from "./api.ts";
import { TwoFactor } from "./two-factor.tsx";

const names = { password: "Password", passkey: "Passkey", oidc: "Provider" } as const;

const nameOf = ({ type, name, provider }: Way): string =>
  [names[type], name ?? provider].filter((part) => part !== null).join(", ");

function PasswordForm({ onDone }: { onDone: () => void }) {
  const [current, setCurrent] = useState("");
  const [wanted, setWanted] = useState("");
  const change = useMutation({
    meta: { done: "Password changed" },
    mutationFn: () =>
      authRequest("POST", "/change-password", { current_password: current, new_password: wanted }),
    onSuccess: onDone,
  });
  return (
    <Form action="Change password" work={change} onSubmit={() => change.mutate()}>
      <p>Every other session ends.</p>
      <Field label="Current password">
        {(id) => (
          <Input
            id={id}
            type="password"
            autoComplete="current-password"
            required
            value={current}
            onChange={(event) => setCurrent(event.target.value)}
          />
        )}
      </Field>
      <Field label="New password">
        {(id) => (
          <Input
            id={id}
            type="password"
            autoComplete="new-password"
            required
            value={wanted}
            onChange={(event) => setWanted(event.target.value)}
          />
        )}
      </Field>
    </Form>
  );
}

/** How the person signs in: password, passkeys, providers and the second factor. */
export function SignInCard() {
  const queries = useQueryClient();
  const methods = useQuery(methodsQuery);
  const [opened, setOpened] = useState<"password" | "two-factor">();
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["sign-in-methods"] });
  const add = useMutation({
    meta: { done: "Passkey added" },
    mutationFn: addPasskey,
    onSuccess: refresh,
  });
  const remove = useMutation({
    meta: { done: "Way of signing in removed" },
    mutationFn: unlink,
    onSuccess: refresh,
  });
  const close = (): void => {
    setOpened(undefined);
    void refresh();
  };
  const failed =
    add.error?.name === "NotAllowedError"
      ? new Error("The browser did not use a passkey. Try again.")
      : (add.error ?? remove.error);
  const actionsOf = ({ id, type }: Way, isOnly: boolean) => {
    const change = (
      <Button look="plain" onClick={() => setOpened("password")}>
        Change password
      </Button>
    );
    const leave = (
      <Button look="plain" onClick={() => remove.mutate(id)}>
        Remove
      </Button>
    );
    if (type !== "password") return isOnly ? null : leave;
    return isOnly ? (
      change
    ) : (
      <Actions>
        {change}
        {leave}
      </Actions>
    );
  };
  const secondFactor = (isOn: boolean) => ({
    id: "two-factor",
    way: "Second factor",
    since: <Status kind={isOn ? "good" : "warning"}>{isOn ? "authenticator app" : "none"}</Status>,
    actions: (
      <Button look="plain" onClick={() => setOpened("two-factor")}>
        {isOn ? "Change second factor" : "Set up authenticator app"}
      </Button>
    ),
  });
  return (
    <Card
      title="Signing in"
      flush
      actions={
        <Button look="plain" disabled={add.isPending} onClick={() => add.mutate()}>
          Add passkey
        </Button>
      }
    >
      {failed === null ? null : <Problem error={failed} />}
      <Loaded query={methods} height={160}>
        {({ data: ways, two_factor: isOn }) => (
          <>
            <Table
              rows={[
                ...ways.map((way) => ({
                  id: way.id,
                  way: nameOf(way),
                  since: <Moment at={way.created_at} />,
                  actions: actionsOf(way, ways.length === 1),
                })),
                secondFactor(isOn),
              ]}
              rowKey={({ id }) => id}
              caption="Ways to sign in"
              columns={[
                { head: "Way", phone: "title", cell: ({ way }) => way },
                { head: `Since, ${zoneName()}`, phone: "when", cell: ({ since }) => since },
                { head: "Actions", phone: "actions", cell: ({ actions }) => actions },
              ]}
            />
            <Modal title="Second factor" open={opened === "two-factor"} onClose={close}>
              <TwoFactor isOn={isOn} onDone={close} />
            </Modal>
          </>
        )}
      </Loaded>
      <Modal title="Change password" open={opened === "password"} onClose={close}>
        <PasswordForm onDone={close} />
      </Modal>
    </Card>
  );
}
