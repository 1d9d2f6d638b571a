import { useQuery } from "@tanstack/react-query";
import { PageHead } from "../../ui/page.tsx";
import { Card } from "../../ui/card.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { organizationsQuery } from "./api.ts";
import { NewOrganization } from "./new-organization.tsx";
import { OrganizationCard } from "./organization-card.tsx";

/** The person's organisations: who is in them, who is invited, and who may do what. */
export function MembersPage() {
  const organizations = useQuery(organizationsQuery);
  return (
    <>
      <PageHead title="Members" />
      <Loaded query={organizations} height={240}>
        {({ data: rows }) =>
          rows.length === 0 ? (
            <Card>
              <Empty>
                You are in no organisation. Make one to share keys, credits and budgets with others.
              </Empty>
            </Card>
          ) : (
            rows.map((organization) => (
              <OrganizationCard key={organization.id} organization={organization} />
            ))
          )
        }
      </Loaded>
      <Card title="New organisation">
        <NewOrganization look={organizations.data?.data.length === 0 ? undefined : "plain"} />
      </Card>
    </>
  );
}
