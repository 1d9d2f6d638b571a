import type { SchemaPart } from "./schema-part.ts";

/** The tables that gateways on one database share. */
export const gatewaysSchema: SchemaPart = {
  tables: [
    // When each workspace was last changed, so that gateways on one database read it again.
    {
      name: "changed_workspaces",
      columns: {
        workspace_id: "text not null primary key",
        at_ms: "integer not null",
      },
    },
    // Facts that the gateways on one database agree on, such as its epoch and the fingerprints of
    // their keys.
    {
      name: "gateway_facts",
      columns: {
        name: "text not null primary key",
        value: "text not null",
      },
    },
    // The last beat of each gateway. A beat that is missing, or older than its gateway knows, shows
    // that the database was set back.
    {
      name: "gateway_beats",
      columns: {
        node_id: "text not null primary key",
        beat: "integer not null",
        at_ms: "integer not null",
      },
    },
    // The last report of each gateway, as JSON.
    {
      name: "gateway_nodes",
      columns: {
        node_id: "text not null primary key",
        about: "text not null",
        seen_at_ms: "integer not null",
      },
    },
  ],
  indexes: ["create index changed_workspaces_by_time on changed_workspaces (at_ms)"],
};
