import { MutationCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { CSPProvider } from "@base-ui/react/csp-provider";
import { ApiError, isWorthRetrying } from "../lib/api.ts";
import { router } from "./router.tsx";
import "./tokens.css";
// Styles of pages that are loaded later: the bundler loads no style sheet with them.
import "../features/models/models.module.css";
import "../features/operator/operator.module.css";
import "../features/playground/playground.module.css";
import "../ui/markdown.module.css";
import "./palette.module.css";

/** How long figures that could not be read again stand before another try. */
const staleRetryMs = 15_000;

declare module "@tanstack/react-query" {
  interface Register {
    /** What a change has done, in words for the person. */
    mutationMeta: { done?: string };
  }
}

const queries = new QueryClient({
  mutationCache: new MutationCache({
    onSuccess: (_answer, _sent, _before, { meta }) => {
      const { done } = meta ?? {};
      if (done !== undefined) void import("../ui/toast.ts").then(({ say }) => say(done));
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      refetchOnWindowFocus: false,
      // What the service refuses, it refuses again; only failures on the way are worth another try.
      retry: (failures, error) => !(error instanceof ApiError) && failures < 2,
      refetchInterval: ({ state: { data, error } }) =>
        data !== undefined && error !== null && isWorthRetrying(error) ? staleRetryMs : false,
    },
  },
});

/** How long the first paint waits for the fonts at most. */
const fontsWithinMs = 2_000;

/** Waits for the fonts, so that no line of text changes its length once it is seen. */
const fontsReady = (): Promise<unknown> =>
  Promise.race([
    Promise.allSettled(
      ["14px Inter", '13px "Geist Mono"'].map((font) => document.fonts.load(font)),
    ),
    new Promise((late) => setTimeout(late, fontsWithinMs)),
  ]);

const root = document.getElementById("root");
if (root !== null) {
  void fontsReady().then(() =>
    createRoot(root).render(
      <StrictMode>
        <CSPProvider disableStyleElements>
          <QueryClientProvider client={queries}>
            <RouterProvider router={router} />
          </QueryClientProvider>
        </CSPProvider>
      </StrictMode>,
    ),
  );
}
