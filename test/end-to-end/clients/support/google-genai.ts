import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ClientOptions } from "./client-under-test.ts";
import { testClientsFolder } from "./test-clients-folder.ts";

/** A part of a content, with the members that tests read. */
interface GooglePart {
  text?: string;
  thought?: boolean;
  thoughtSignature?: string;
  functionCall?: { id?: string; name?: string; args?: Record<string, unknown> };
  functionResponse?: object;
  inlineData?: { mimeType: string; data: string };
}

/** A turn of a conversation. */
export interface GoogleContent {
  role?: string;
  parts?: GooglePart[];
}

/** An answer, or a chunk of a stream; every version of the package has these members. */
export interface GoogleAnswer {
  text?: string;
  functionCalls?: { id?: string; name?: string }[];
  candidates?: { finishReason?: string; content?: GoogleContent }[];
  usageMetadata?: {
    promptTokenCount?: number;
    candidatesTokenCount?: number;
    thoughtsTokenCount?: number;
    totalTokenCount?: number;
  };
}

/** The parts of `@google/genai` that tests use. */
export interface GoogleClient {
  models: {
    generateContent(asked: object): Promise<GoogleAnswer>;
    generateContentStream(asked: object): Promise<AsyncIterable<GoogleAnswer>>;
    embedContent(asked: object): Promise<{ embeddings?: { values?: number[] }[] }>;
    countTokens(asked: object): Promise<{ totalTokens?: number }>;
    get(asked: object): Promise<{ name?: string }>;
    list(asked?: object): Promise<AsyncIterable<{ name?: string }>>;
  };
  chats: {
    create(options: object): {
      sendMessage(said: object): Promise<GoogleAnswer>;
      sendMessageStream(said: object): Promise<AsyncIterable<GoogleAnswer>>;
    };
  };
}

/** Folders of the test clients with versions of the package that differ in paths and framing. */
export const googleGenaiVersions = [
  ["google-genai-1", "1.30"],
  ["google-genai-2", "2.32"],
  ["google-genai-3", "3.3"],
] as const;

const packageIn = (folder: string): string =>
  join(testClientsFolder, folder, "node_modules", "@google", "genai");

/** Returns whether a version is installed. */
export const hasGoogleGenai = (folder: string): boolean => existsSync(packageIn(folder));

/** Returns a client of a version. */
export async function googleGenai(
  folder: string,
  { origin, apiKey, retries }: ClientOptions,
): Promise<GoogleClient> {
  const path = packageIn(folder);
  const { GoogleGenAI } = (await import(Bun.resolveSync(path, path))) as {
    GoogleGenAI: new (options: object) => GoogleClient;
  };
  return new GoogleGenAI({
    apiKey,
    httpOptions: {
      baseUrl: origin,
      ...(retries > 0 && { retryOptions: { attempts: retries + 1, initialDelay: 0.01 } }),
    },
  });
}
