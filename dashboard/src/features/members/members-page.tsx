import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSession } from "../../lib/session.ts";
import { Card } from "../../ui/card.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Sections } from "../../ui/sections.tsx";
import { type Organization, organizationsQuery } from "./api.ts";
import { NewOrganization } from "./new-organization.tsx";
import { OrganizationCard } from "./organization-card.tsx";

/** One organisation of several: first that of the workspace that the person is in. */
function Organizations({ rows }: { rows: readonly Organization[] }) {
  const { data: session } = useSession();
  const [chosen, setChosen] = useState<string>();
  const shown =
    rows.find(({ id }) => id === chosen) ??
    rows.find(({ workspace_id: id }) => id === session?.workspace.id) ??
    rows[0];
  if (shown === undefined)
    return (
      <Card>
        <Empty>
          You are in no organisation. Make one to share keys, credits and budgets with others.
        </Empty>
      </Card>
    );
  return (
    <>
      {rows.length === 1 ? null : (
        <Sections
          sections={rows.map(({ id, name }) => [id, name])}
          shown={shown.id}
          onChoose={setChosen}
        />
      )}
      <OrganizationCard key={shown.id} organization={shown} />
    </>
  );
}

/** The person's organisations: who is in them, who is invited, and who may do what. */
export function MembersPage() {
  const organizations = useQuery(organizationsQuery);
  return (
    <>
      <PageHead title="Members" />
      <Loaded query={organizations} height={240}>
        {({ data: rows }) => <Organizations rows={rows} />}
      </Loaded>
      <Card title="New organisation">
        <NewOrganization look={organizations.data?.data.length === 0 ? undefined : "plain"} />
      </Card>
    </>
  );
}
