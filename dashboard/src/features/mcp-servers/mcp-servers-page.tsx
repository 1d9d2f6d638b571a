import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { count, usd } from "../../lib/format.ts";
import { useScope } from "../../lib/session.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Confirm } from "../../ui/form.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Name, Status } from "../../ui/values.tsx";
import { Drawer, Modal } from "../../ui/overlay.tsx";
import { PageHead } from "../../ui/page.tsx";
import { RowMenu } from "../../ui/row-menu.tsx";
import { RowButton, Table } from "../../ui/table.tsx";
import { type McpServer, connectAddress, deleteServer, serversQuery } from "./api.ts";
import { ServerDetails } from "./server-details.tsx";
import { ServerForm } from "./server-form.tsx";
import { ServerState } from "./server-state.tsx";

const route = getRouteApi("/mcp-servers");

type Act = { act: "edit" | "delete"; server: McpServer };

const changesOf = ({ tools }: McpServer): number =>
  tools.filter(({ status }) => status === "changed").length;

function ToolCount({ server }: { server: McpServer }) {
  const usable = server.tools.filter(({ status }) => status === "active").length;
  const changes = changesOf(server);
  return (
    <>
      <div>{count(usable)}</div>
      {changes === 0 ? null : (
        <Status kind="warning">
          {changes === 1 ? "1 change to accept" : `${count(changes)} changes to accept`}
        </Status>
      )}
    </>
  );
}

/** The upstream MCP servers whose tools agents and models may use. */
export function McpServersPage() {
  const mayWrite = useScope("write:connections");
  const queries = useQueryClient();
  const servers = useQuery(serversQuery);
  const { id } = route.useSearch();
  const navigate = route.useNavigate();
  const show = (shown: string | undefined) => void navigate({ search: { id: shown } });
  const [isAdding, setAdding] = useState(false);
  const [chosen, setChosen] = useState<Act>();
  const done = () => {
    setAdding(false);
    setChosen(undefined);
    return queries.invalidateQueries({ queryKey: ["mcp-servers"] });
  };
  const remove = useMutation({
    meta: { done: "MCP server deleted" },
    mutationFn: deleteServer,
    onSuccess: done,
  });
  const add = mayWrite ? <Button onClick={() => setAdding(true)}>Add server</Button> : null;
  const opened = servers.data?.data.find((server) => server.id === id);
  return (
    <>
      <PageHead title="MCP servers">{add}</PageHead>
      <Card flush>
        <Loaded query={servers} height={240}>
          {({ data: rows }) =>
            rows.length === 0 ? (
              <Empty action={add}>
                No MCP server yet. Agents reach the tools of all servers at one address, and models
                call them in chats.
              </Empty>
            ) : (
              <Table
                rows={rows}
                rowKey={(server) => server.id}
                caption="MCP servers"
                columns={[
                  {
                    head: "Server",
                    phone: "title",
                    cell: (server) => (
                      <RowButton onClick={() => show(server.id)}>
                        <Name>{server.name}</Name>
                      </RowButton>
                    ),
                  },
                  {
                    head: "State",
                    phone: "state",
                    cell: (server) => <ServerState server={server} />,
                  },
                  { head: "Tools", number: true, cell: (server) => <ToolCount server={server} /> },
                  {
                    head: "Your access",
                    phone: "when",
                    cell: (server) =>
                      server.connected === false ? (
                        <a href={connectAddress(server.id)}>Connect {server.name}</a>
                      ) : server.connected === true ? (
                        "connected"
                      ) : (
                        "shared"
                      ),
                  },
                  {
                    head: "Price of a call",
                    number: true,
                    phone: "figure",
                    cell: ({ price_per_call: price }) => usd(price),
                  },
                  {
                    head: "Actions",
                    phone: "actions",
                    cell: (server) =>
                      mayWrite && server.source === "workspace" ? (
                        <RowMenu
                          label={`Actions of ${server.name}`}
                          actions={[
                            ["Edit", () => setChosen({ act: "edit", server })],
                            ["Delete", () => setChosen({ act: "delete", server })],
                          ]}
                        />
                      ) : null,
                  },
                ]}
              />
            )
          }
        </Loaded>
      </Card>
      <Drawer
        title={opened?.name ?? ""}
        open={opened !== undefined}
        onClose={() => show(undefined)}
      >
        {opened === undefined ? null : <ServerDetails server={opened} />}
      </Drawer>
      <Modal title="Add MCP server" open={isAdding} onClose={() => setAdding(false)}>
        <ServerForm onSaved={done} />
      </Modal>
      <Modal
        title={`Edit ${chosen?.server.name ?? ""}`}
        open={chosen?.act === "edit"}
        onClose={() => setChosen(undefined)}
      >
        <ServerForm stored={chosen?.server} onSaved={done} />
      </Modal>
      <Confirm
        title={`Delete ${chosen?.server.name ?? ""}`}
        open={chosen?.act === "delete"}
        onClose={() => setChosen(undefined)}
        action="Delete server"
        work={remove}
        onConfirm={() => chosen && remove.mutate(chosen.server.id)}
      >
        <p>
          Agents and models lose its tools at once. Its headers, accepted definitions and the access
          that people gave are deleted with it.
        </p>
      </Confirm>
    </>
  );
}
