import { legalName } from "../tool-aliases.ts";

const maxLength = 64;

/**
 * A call's id as Anthropic and its clients take them, `^[a-zA-Z0-9_-]+$`. The same id always becomes the
 * same, so that a call and its result still belong together when they come back in a later turn.
 */
export const legalCallId = (id: string): string => legalName(id, maxLength);
