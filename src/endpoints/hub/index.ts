import type { Endpoint } from "../../access/define-endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  addMessages,
  changeConversation,
  changeConversationSettings,
  createConversation,
  deleteConversation,
  getConversation,
  getConversationSettings,
  listConversations,
} from "./conversations.ts";
import { changeHub, createHub, deleteHub, exportHub, getHub, listHubs } from "./hubs.ts";
import { hubItemRoutes } from "./hub-items.ts";
import { changePrompt, promptRoutes, publishPrompt } from "./prompts.ts";
import { changeSkill, exportSkill, publishSkill, skillRoutes } from "./skills.ts";

/** Prompts, skills, hubs and conversations; a part of the table in `endpoints/index.ts`. */
export const hubEndpoints: readonly Endpoint<Dependencies>[] = [
  publishPrompt,
  changePrompt,
  ...promptRoutes,
  publishSkill,
  changeSkill,
  exportSkill,
  ...skillRoutes,
  createHub,
  listHubs,
  getHub,
  changeHub,
  deleteHub,
  ...hubItemRoutes,
  exportHub,
  createConversation,
  listConversations,
  getConversationSettings,
  changeConversationSettings,
  getConversation,
  changeConversation,
  deleteConversation,
  addMessages,
];
