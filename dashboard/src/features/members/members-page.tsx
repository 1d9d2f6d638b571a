import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useEnterWorkspace } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { Card, Empty, Field, Input, Loaded } from "../../ui/parts.tsx";
import { Form } from "../../ui/form.tsx";
import { createOrganization, organizationsQuery } from "./api.ts";
import { OrganizationCard } from "./organization-card.tsx";

/** The person's organisations: who is in them, who is invited, and who may do what. */
export function MembersPage() {
  const enter = useEnterWorkspace();
  const organizations = useQuery(organizationsQuery);
  const [name, setName] = useState("");
  const create = useMutation({
    mutationFn: createOrganization,
    onSuccess: ({ workspace_id: workspace }) => {
      setName("");
      return enter.mutateAsync(workspace);
    },
  });
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
        <Form action="Create organisation" work={create} onSubmit={() => create.mutate(name)}>
          <Field label="Name">
            {(id) => (
              <Input
                id={id}
                value={name}
                onChange={(event) => setName(event.target.value)}
                required
                maxLength={200}
              />
            )}
          </Field>
        </Form>
      </Card>
    </>
  );
}
