import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { PageHead } from "../../app/shell.tsx";
import { useSession } from "../../app/session.ts";
import { type List, request } from "../../lib/api.ts";
import { localTime } from "../../lib/format.ts";
import { Button, Card, Facts, Loaded, Problem, Status } from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";

interface SessionRow {
  id: string;
  current?: boolean;
  created_at: string;
  updated_at?: string;
  expires_at: string;
  ip_address?: string | null;
  address?: string | null;
  user_agent: string | null;
}

/** The person's own account: who is signed in, and from where. */
export function AccountPage() {
  const { data: session } = useSession();
  const queries = useQueryClient();
  const sessions = useQuery({ queryKey: ["sessions"], queryFn: () => request<List<SessionRow>>("/sessions") });
  const end = useMutation({
    mutationFn: (id: string) => request(`/sessions/${id}`, { method: "DELETE" }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["sessions"] }),
  });
  return (
    <>
      <PageHead title="Your account" />
      <Card>
        <Facts rows={[["Name", session?.user.name], ["E-mail", session?.user.email], ["Role here", session?.workspace.role],
          ["Runs this installation", session?.user.operator ? "yes" : "no"]]} />
      </Card>
      {end.error === null ? null : <Problem error={end.error} />}
      <Card title="Sessions" flush>
        <Loaded query={sessions} height={200}>
          {({ data: rows }) => (
            <Table rows={rows} rowKey={({ id }) => id} caption="Sessions" columns={[
              { head: "Device", cell: ({ user_agent: agent }) => agent ?? "unknown" },
              { head: "Address", cell: ({ ip_address: ip, address }) => ip ?? address ?? "–" },
              { head: "Began", cell: ({ created_at: at }) => localTime(at) },
              { head: "Actions", cell: ({ id, current }) => current ? <Status kind="good">this one</Status> : <Button look="plain" onClick={() => end.mutate(id)}>End session</Button> },
            ]} />
          )}
        </Loaded>
      </Card>
    </>
  );
}
