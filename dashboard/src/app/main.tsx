import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { CSPProvider } from "@base-ui/react/csp-provider";
import { ApiError, isWorthRetrying } from "../lib/api.ts";
import { router } from "./router.tsx";
import "./tokens.css";
// Styles of pages that are loaded later: the bundler loads no style sheet with them.
import "../features/playground/playground.module.css";
import "./palette.module.css";

/** How long figures that could not be read again stand before another try. */
const staleRetryMs = 15_000;

const queries = new QueryClient({
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

const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <CSPProvider disableStyleElements>
        <QueryClientProvider client={queries}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </CSPProvider>
    </StrictMode>,
  );
}
