import { useMutation } from "@tanstack/react-query";
import { Suspense, lazy, useState } from "react";
import { Actions, Button } from "../../ui/button.tsx";
import { Code } from "../../ui/copy.tsx";
import { Field, Input } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { Problem, Skeleton } from "../../ui/loaded.tsx";
import { authRequest } from "./api.ts";

// Loaded where an app is set up: it brings an encoder.
const QrCode = lazy(async () => ({ default: (await import("./qr-code.tsx")).QrCode }));

interface SetUp {
  totp_uri: string;
  backup_codes: readonly string[];
}

const secretIn = (uri: string): string => new URL(uri).searchParams.get("secret") ?? uri;

function Codes({ codes }: { codes: readonly string[] }) {
  return (
    <>
      <p>
        Keep these backup codes. Each works once in place of the app, and they are not shown again.
      </p>
      <Code text={codes.join("\n")} label="Copy codes" />
    </>
  );
}

function Confirm({ setUp, onDone }: { setUp: SetUp; onDone: () => void }) {
  const [code, setCode] = useState("");
  const confirm = useMutation({
    mutationFn: () => authRequest("POST", "/two-factor/confirm", { code }),
    onSuccess: onDone,
  });
  return (
    <Form action="Turn it on" work={confirm} onSubmit={() => confirm.mutate()}>
      <p>Scan this with your authenticator app, or type the secret into it.</p>
      <Suspense fallback={<Skeleton height={200} />}>
        <QrCode text={setUp.totp_uri} label="QR code of the secret" />
      </Suspense>
      <a href={setUp.totp_uri}>Open the app with it</a>
      <Code text={secretIn(setUp.totp_uri)} label="Copy secret" />
      <Codes codes={setUp.backup_codes} />
      <Field label="Code of the app">
        {(id) => (
          <Input
            id={id}
            inputMode="numeric"
            autoComplete="one-time-code"
            required
            value={code}
            onChange={(event) => setCode(event.target.value)}
          />
        )}
      </Field>
    </Form>
  );
}

/**
 * Sets an authenticator app up, makes other backup codes, or takes the app away; the password
 * proves who asks.
 */
export function TwoFactor({ isOn, onDone }: { isOn: boolean; onDone: () => void }) {
  const [password, setPassword] = useState("");
  const body = password === "" ? {} : { password };
  const begin = useMutation({
    mutationFn: () => authRequest<SetUp>("POST", "/two-factor/enable", body),
  });
  const renew = useMutation({
    mutationFn: () =>
      authRequest<{ backup_codes: readonly string[] }>("POST", "/two-factor/backup-codes", body),
  });
  const end = useMutation({
    meta: { done: "Second factor turned off" },
    mutationFn: () => authRequest("POST", "/two-factor/disable", body),
    onSuccess: onDone,
  });
  if (begin.data !== undefined) return <Confirm setUp={begin.data} onDone={onDone} />;
  const field = (
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
  );
  if (!isOn)
    return (
      <Form action="Continue" work={begin} onSubmit={() => begin.mutate()}>
        {field}
      </Form>
    );
  return (
    <>
      {renew.data === undefined ? null : <Codes codes={renew.data.backup_codes} />}
      <Form action="Make other backup codes" work={renew} onSubmit={() => renew.mutate()}>
        {field}
      </Form>
      {end.error === null ? null : <Problem error={end.error} />}
      <Actions>
        <Button look="danger" disabled={end.isPending} onClick={() => end.mutate()}>
          Take the app away
        </Button>
      </Actions>
    </>
  );
}
