import { zoneName } from "../../lib/time.ts";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { duration, requestCost, usd } from "../../lib/format.ts";
import { useScope, useSession } from "../../lib/session.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Facts } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { Empty, Loaded, Problem } from "../../ui/loaded.tsx";
import { Moment, Name, Status } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import {
  type McpServer,
  type Tool,
  callsQuery,
  connectAddress,
  connectionsQuery,
  disconnectSelf,
  endConnection,
  refreshServer,
} from "./api.ts";
import { DefinitionChange } from "./definition-change.tsx";
import { ServerState, ToolState } from "./server-state.tsx";

const hasChange = (tool: Tool): tool is Tool & { changed: NonNullable<Tool["changed"]> } =>
  tool.changed !== null;

/** The tools of a server, and what it changed in their definitions. */
function Tools({ server, mayAccept }: { server: McpServer; mayAccept: boolean }) {
  const queries = useQueryClient();
  const refresh = useMutation({
    mutationFn: refreshServer,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["mcp-servers"] }),
  });
  return (
    <>
      {refresh.error === null ? null : <Problem error={refresh.error} />}
      {server.tools.filter(hasChange).map((tool) => (
        <DefinitionChange
          key={tool.name}
          tool={tool}
          isPending={refresh.isPending}
          onAccept={
            mayAccept ? () => refresh.mutate({ id: server.id, accept: [tool.name] }) : undefined
          }
        />
      ))}
      {server.tools.length === 0 ? (
        <Empty>The server has listed no tools yet.</Empty>
      ) : (
        <Table
          rows={server.tools}
          rowKey={({ name }) => name}
          caption={`Tools of ${server.name}`}
          columns={[
            { head: "Tool", phone: "title", cell: ({ name }) => <Name>{name}</Name> },
            { head: "About", phone: "note", cell: ({ description }) => description ?? "–" },
            {
              head: "Effect",
              phone: "when",
              cell: ({ annotations }) =>
                annotations?.["readOnlyHint"] === true ? "reads" : "may change things",
            },
            { head: "State", phone: "state", cell: ({ status }) => <ToolState status={status} /> },
          ]}
        />
      )}
      <Actions>
        <Button
          look="plain"
          disabled={refresh.isPending}
          onClick={() => refresh.mutate({ id: server.id })}
        >
          Read tools again
        </Button>
      </Actions>
    </>
  );
}

/** The people who have connected a server, and the person's own connection. */
function People({ server, mayEnd }: { server: McpServer; mayEnd: boolean }) {
  const queries = useQueryClient();
  const people = useQuery(connectionsQuery(server.id));
  const onSuccess = () => queries.invalidateQueries({ queryKey: ["mcp-servers"] });
  const leave = useMutation({ mutationFn: disconnectSelf, onSuccess });
  const end = useMutation({ mutationFn: endConnection, onSuccess });
  return (
    <>
      {end.error === null ? null : <Problem error={end.error} />}
      {leave.error === null ? null : <Problem error={leave.error} />}
      <Actions>
        {server.connected === true ? (
          <Button look="plain" onClick={() => leave.mutate(server.id)}>
            Disconnect yourself
          </Button>
        ) : (
          <a href={connectAddress(server.id)}>Connect {server.name}</a>
        )}
      </Actions>
      <Loaded query={people} height={120}>
        {({ data: rows }) =>
          rows.length === 0 ? (
            <Empty>No one has connected this server yet.</Empty>
          ) : (
            <Table
              rows={rows}
              rowKey={({ user_id: id }) => id ?? "everyone"}
              caption={`People who have connected ${server.name}`}
              columns={[
                { head: "Person", phone: "title", cell: ({ name }) => <Name>{name}</Name> },
                {
                  head: `Connected, ${zoneName()}`,
                  phone: "when",
                  cell: ({ connected_at: at }) => <Moment at={at} />,
                },
                {
                  head: "Actions",
                  phone: "actions",
                  cell: ({ user_id: userId, name }) =>
                    mayEnd ? (
                      <Button
                        look="plain"
                        disabled={end.isPending}
                        onClick={() => end.mutate({ id: server.id, userId })}
                      >
                        End connection of {name}
                      </Button>
                    ) : null,
                },
              ]}
            />
          )
        }
      </Loaded>
    </>
  );
}

const callKinds: Readonly<Record<string, "good" | "bad">> = { completed: "good", failed: "bad" };

/** The last calls of a server's tools. */
function Calls({ server }: { server: McpServer }) {
  const calls = useQuery(callsQuery(server.id));
  return (
    <Loaded query={calls} height={160}>
      {({ data: rows }) =>
        rows.length === 0 ? (
          <Empty>No call yet. Agents call the tools at the address below Use.</Empty>
        ) : (
          <>
            <Table
              rows={rows}
              rowKey={({ id }) => id}
              caption={`Calls of ${server.name}`}
              columns={[
                {
                  head: `Time, ${zoneName()}`,
                  phone: "when",
                  cell: ({ created_at: at }) => <Moment at={at} />,
                },
                {
                  head: "Tool",
                  phone: "title",
                  cell: ({ model }) => <Name>{model.slice(server.id.length + 1)}</Name>,
                },
                { head: "Key", cell: ({ key_name: key }) => <Name>{key ?? "–"}</Name> },
                {
                  head: "Outcome",
                  phone: "state",
                  cell: ({ status }) => <Status kind={callKinds[status]}>{status}</Status>,
                },
                {
                  head: "Duration",
                  number: true,
                  cell: ({ total_time: took }) => duration(took),
                },
                {
                  head: "Cost",
                  number: true,
                  phone: "figure",
                  cell: ({ total_cost: cost }) => requestCost(cost),
                },
              ]}
            />
            <Link to="/activity" search={{ provider: `mcp/${server.id}` }}>
              All calls
            </Link>
          </>
        )
      }
    </Loaded>
  );
}

/** How agents reach a server, and how it is reached itself. */
function Use({ server }: { server: McpServer }) {
  const address = `${location.origin}/mcp/${server.id}`;
  return (
    <>
      <p>Agents use this address with an LLM key, or sign in there:</p>
      <Code text={address} />
      <p>Claude Code:</p>
      <Code text={`claude mcp add --transport http ${server.id} ${address}`} />
      <Facts
        rows={[
          ["Address", server.url ?? "from the operator's configuration"],
          ["Access", server.auth.type.replaceAll("_", " ")],
          ["Price of a call", usd(server.price_per_call)],
          ["Time for a call", duration(server.timeout_ms)],
          ["State", <ServerState key="state" server={server} />],
          [
            "Last answer took",
            server.health.latency_ms === null ? "–" : duration(server.health.latency_ms),
          ],
          ["Tools read", <Moment key="read" at={server.checked_at} never="never" />],
        ]}
      />
    </>
  );
}

/** One server: its tools, the people who connected it, its calls, and how to use it. */
export function ServerDetails({ server }: { server: McpServer }) {
  const mayWrite = useScope("write:connections");
  const maySee = useScope("read:analytics");
  const isOperator = useSession().data?.user.operator ?? false;
  const mayAccept = mayWrite && (server.source === "workspace" || isOperator);
  return (
    <Tabs
      label={`Parts of ${server.name}`}
      tabs={[
        ["Tools", <Tools key="tools" server={server} mayAccept={mayAccept} />],
        ...(server.connected === null
          ? []
          : [["People", <People key="people" server={server} mayEnd={mayWrite} />] as const]),
        ...(maySee ? [["Calls", <Calls key="calls" server={server} />] as const] : []),
        ["Use", <Use key="use" server={server} />],
      ]}
    />
  );
}
