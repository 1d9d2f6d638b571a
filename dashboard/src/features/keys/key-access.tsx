import { useQuery } from "@tanstack/react-query";
import type { Row } from "../../lib/api-types.ts";
import { type List, request } from "../../lib/api.ts";
import { countOf, utc, usd } from "../../lib/format.ts";
import { useSession } from "../../lib/session.ts";
import { Drawer } from "../../ui/overlay.tsx";
import { Facts } from "../../ui/card.tsx";
import { Loaded } from "../../ui/loaded.tsx";
import { Name } from "../../ui/values.tsx";
import type { Key } from "./api.ts";

type Person = Row<"GET /organizations/{id}/members">;

/** How many names are shown without being asked for. */
const shownMax = 5;

/** Names one below the other; a sentence where everything is allowed or nothing is. */
function Names({
  of: names,
  all,
  noun,
}: {
  of: readonly string[] | null;
  all: string;
  /** What they are, in the plural. */
  noun: string;
}) {
  if (names === null) return <>{all}</>;
  if (names.length === 0) return <>None</>;
  const lines = names.map((name) => (
    <div key={name}>
      <Name>{name}</Name>
    </div>
  ));
  if (names.length <= shownMax) return <>{lines}</>;
  return (
    <details>
      <summary>{`${names.length} ${noun}, such as ${names[0]}`}</summary>
      {lines}
    </details>
  );
}

const resets = { daily: "a day", weekly: "a week", monthly: "a month" } as const;

/** What bounds the spending and the speed of a key, in sentences. */
function bounds({
  limit,
  limit_remaining: left,
  limit_reset: reset,
  rate_limit,
  tpm,
}: Key): string[] {
  return [
    limit === null
      ? "No cap of its own: it may spend what the workspace has"
      : `${usd(limit)} ${reset === null ? "in all" : resets[reset]}, of which ${usd(left ?? 0)} are left`,
    ...(rate_limit > 0 ? [`${countOf(rate_limit, "request")} a minute`] : []),
    ...(tpm === null ? [] : [`${countOf(tpm, "token")} a minute`]),
  ];
}

const roleWords: Readonly<Record<string, string>> = {
  owner: "owner",
  admin: "admin",
  member: "member",
};

/** The people who see the key in this list, and may change it. */
function People({ organizationId }: { organizationId: string }) {
  const members = useQuery({
    queryKey: ["members", organizationId, "access"],
    queryFn: () => request<List<Person>>(`/organizations/${organizationId}/members?limit=100`),
  });
  return (
    <Loaded query={members} height={80}>
      {({ data }) =>
        data.map(({ user_id: id, name, email, role }) => (
          <div key={id}>
            <Name>{`${name || email}, ${roleWords[role] ?? role}`}</Name>
          </div>
        ))
      }
    </Loaded>
  );
}

/** Who a key belongs to, what it may be used for and up to which limits, and who sees it. */
export function KeyAccess({
  of,
  owner,
  onClose,
}: {
  of: Key | undefined;
  owner: string | undefined;
  onClose: () => void;
}) {
  const { data: session } = useSession();
  const organizationId = session?.workspace.organization_id ?? undefined;
  return (
    <Drawer title={`Who can use ${of?.name ?? ""}`} open={of !== undefined} onClose={onClose}>
      {of === undefined ? null : (
        <>
          <p>
            Every program that has the secret can use this key. The secret was shown once; the
            people below see the key&apos;s name and its spending, and not the secret.
          </p>
          <Facts
            rows={[
              ["Owner", owner ?? "A person who has left"],
              ["Rights", of.operator ? "An operator's" : "Requests to models"],
              [
                "Models",
                <Names key="models" of={of.allowed_models} all="Every model" noun="models" />,
              ],
              [
                "Endpoints",
                <Names
                  key="endpoints"
                  of={of.allowed_endpoints}
                  all="Every endpoint for keys"
                  noun="paths"
                />,
              ],
              [
                "Tools",
                <Names
                  key="tools"
                  of={of.allowed_tools}
                  all="Every tool of the workspace"
                  noun="tools"
                />,
              ],
              ["Limits", <Names key="limits" of={bounds(of)} all="" noun="limits" />],
              [
                "Expires",
                of.expires_at === null ? "Never" : <span key="ends">{utc(of.expires_at)}</span>,
              ],
              [
                "Seen and changed by",
                organizationId === undefined ? (
                  "You alone: this is a personal workspace"
                ) : (
                  <People key="people" organizationId={organizationId} />
                ),
              ],
            ]}
          />
        </>
      )}
    </Drawer>
  );
}
