import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { pageRoot } from "./api/places";
import { queries } from "./api/queries";
import { Shell } from "./shell/Shell";
import { applyTheme } from "./shell/theme";
import "./styles/colours.css";
import "./styles/base.css";
import "./kit/kit.css";
import "./shell/shell.css";

applyTheme();
const place = document.getElementById("page");
if (place === null) throw new Error("the document has no #page");
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <Router base={pageRoot}>
        <Shell />
      </Router>
    </QueryClientProvider>
  </StrictMode>,
);
