import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hourMs } from "../../../src/platform/kernel/clock.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { at, listAt, textAt } from "./at.ts";
import { startPeopled, type PeopledGateway } from "./people-browser.ts";
import { linkIn, startMailServer } from "./receivers.ts";
import { engines } from "./two-workspaces.ts";

describe.each(engines)("invitation mails on %s", (_, freshUrl) => {
  const [mail, clock] = [startMailServer(), new FakeClock(Date.now())];
  let scene: PeopledGateway;
  let organizationId: string;
  let workspaceId: string;
  beforeAll(async () => {
    scene = await startPeopled(
      await freshUrl(),
      { mail: { url: mail.url, from: "noreply@example.com" } },
      { clock },
    );
    const name = "Acme https://evil.example/login\r\nBcc: x@evil.example";
    const organization = await scene.owner.json("POST", "/organizations", { name });
    [organizationId, workspaceId] = [
      textAt(organization, "id"),
      textAt(organization, "workspace_id"),
    ];
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    mail.stop();
  });

  const invite = (email: string): Promise<unknown> =>
    scene.owner.json("POST", `/organizations/${organizationId}/invitations`, {
      email,
      role: "admin",
    });
  const mailsTo = (email: string): string[] =>
    mail.mails.filter(({ to }) => to === email).map(({ text }) => text);

  test("the link is mailed, works and is also in the response", async () => {
    const answer = await invite("anna@example.com");
    expect(answer).toMatchObject({
      mail: "sent",
      data: { email: "anna@example.com", role: "admin" },
    });
    const [received] = mail.mails.filter(({ to }) => to === "anna@example.com");
    expect(received && linkIn(received)).toBe(textAt(answer, "url"));
    expect(received?.from).toBe("noreply@example.com");
    const token = new URL(textAt(answer, "url")).searchParams.get("token");
    const person = {
      name: "Anna",
      email: "anna@example.com",
      password: "a long password",
      invitation_token: token,
    };
    expect((await scene.stranger().ask("POST", "/api/auth/sign-up", person)).status).toBe(200);
  });

  test("an organization's name cannot add a link or a header to the mail", async () => {
    await invite("bert@example.com");
    const [text = ""] = mailsTo("bert@example.com");
    expect(text).not.toContain("https://evil.example");
    expect(text).not.toMatch(/^Bcc:/m);
    expect(text.match(/https?:\/\//g)).toHaveLength(1);
  });

  test("an address gets at most five mails an hour, and the response still has the link", async () => {
    const outcomes: unknown[] = [];
    for (let times = 0; times < 7; times += 1)
      outcomes.push(at(await invite("carl@example.com"), "mail"));
    expect(outcomes).toEqual(["sent", "sent", "sent", "sent", "sent", "limited", "limited"]);
    expect(mailsTo("carl@example.com")).toHaveLength(5);
    clock.advance(hourMs + 60_000);
    expect(await invite("carl@example.com")).toMatchObject({
      mail: "sent",
      url: expect.stringContaining("/join?token="),
    });
  });

  test("one person can send at most 30 mails an hour", async () => {
    clock.advance(2 * hourMs);
    const outcomes: unknown[] = [];
    for (let index = 0; index < 32; index += 1)
      outcomes.push(at(await invite(`person${index}@example.com`), "mail"));
    expect(outcomes).toEqual([...Array(30).fill("sent"), "limited", "limited"]);
  });

  test("an invitation is in the audit logs of the organization and the inviter, without the address", async () => {
    clock.advance(1);
    const answer = await invite("dora@example.com");
    const expected = {
      action: "POST /organizations/:id/invitations",
      target: `${organizationId} ${textAt(answer, "data.id")}`,
      actor: { label: "owner@example.com" },
      outcome: "done",
    };
    const newest = async (): Promise<unknown> =>
      listAt(await scene.owner.json("GET", "/security/audit?limit=1"), "data")[0];
    expect(await newest()).toMatchObject(expected);
    const home = textAt(await scene.owner.json("GET", "/session"), "workspace.id");
    await scene.owner.json("PATCH", "/session", { workspace_id: workspaceId });
    expect(await newest()).toMatchObject(expected);
    expect(JSON.stringify(await newest())).not.toContain("dora@example.com");
    await scene.owner.json("PATCH", "/session", { workspace_id: home });
  });

  test("an invitation is still created when the mail server refuses or is unreachable", async () => {
    clock.advance(2 * hourMs);
    mail.stop();
    expect(await invite("emil@example.com")).toMatchObject({
      mail: "failed",
      url: expect.stringContaining("/join?token="),
    });
  });
});

test("without a mail server the response reports not_configured and has the link", async () => {
  const scene = await startPeopled(undefined);
  const { id } = (await scene.owner.json("POST", "/organizations", { name: "Acme" })) as {
    id: string;
  };
  const answer = await scene.owner.json("POST", `/organizations/${id}/invitations`, {
    email: "fritz@example.com",
  });
  expect(answer).toMatchObject({
    mail: "not_configured",
    url: expect.stringContaining("/join?token="),
  });
  await scene.stop();
});
