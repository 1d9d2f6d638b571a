import type { Account } from "../open-account.ts";
import { outputItems, type NewResponse } from "../../inference/responses/stored-response.ts";
import type { ResponseStore } from "../../inference/responses/response-store.ts";
import { messageOf } from "../../mcp/hub/conversation.ts";
import { Conversations } from "../../mcp/hub/conversations.ts";
import type { HubLibrary } from "../../mcp/hub/hub-library.ts";
import { openHub } from "../../mcp/hub/open-hub.ts";
import { SearchIndex } from "../../mcp/hub/search-index.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { hourly } from "../../platform/kernel/time/hourly.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { AppSettings } from "../settings-of.ts";
import type { AppTables } from "./build-storage.ts";

/** The hub and the conversations, and the functions that end their work. */
export interface HubParts {
  hub: HubLibrary;
  conversations: Conversations;
  /** Deletes conversations that are past their retention. */
  purgeConversations(): Promise<void>;
  /** Waits for conversations that are being written. */
  stopHub(): Promise<void>;
}

/** Builds the hub. Stored responses are kept as conversations of the people whose keys asked. */
export function buildHub(
  { hubImportNetworks = [], responseDays }: AppSettings,
  {
    storage: { database, kind },
    account: { directory, security },
    responses,
    clock,
    logger,
    isLeader,
  }: {
    storage: Storage<AppTables>;
    account: Account;
    responses: ResponseStore;
    clock: Clock;
    logger: Logger;
    isLeader: (() => boolean) | undefined;
  },
): HubParts {
  const conversations = new Conversations({
    database: withTables(database),
    index: new SearchIndex(kind),
    clock,
    keepDays: responseDays,
    keepsNothing: (ownerId) => security.privacy.of(ownerId).zdr,
  });
  const writing = new Set<Promise<void>>();
  // Not awaited: an answer neither waits for the list of conversations nor fails with it.
  responses.onKept = (response) => {
    const personId = directory.llmKeyById(response.keyId)?.creatorUserId;
    if (personId === undefined) return;
    const written = conversations
      .keepResponse(keptResponse(response, personId))
      .catch((error: unknown) =>
        logger.error({ err: error }, "a stored response could not be kept in its conversation"),
      )
      .finally(() => void writing.delete(written));
    writing.add(written);
  };
  const endPurging = hourly(() => {
    if (isLeader?.() === false) return;
    conversations
      .purge()
      .catch((error: unknown) =>
        logger.error({ err: error }, "old conversations could not be deleted"),
      );
  });
  return {
    conversations,
    purgeConversations: () => conversations.purge(),
    hub: openHub({
      database: withTables(database),
      kind,
      clock,
      importNetworks: hubImportNetworks,
    }),
    async stopHub() {
      endPurging();
      await Promise.all(writing);
    },
  };
}

const keptResponse = (
  { id, workspaceId, keyId, previousResponseId, record, inputItems }: NewResponse,
  personId: string,
) => {
  const model = String(record["model"]);
  const messages = [...inputItems, ...outputItems(record)].flatMap(
    (item) => messageOf(item, model) ?? [],
  );
  return { id, workspaceId, keyId, personId, previousResponseId, model, messages };
};
