import { Page } from "@/kit/Page";

export default function Quarantine() {
  return <Page title="Quarantine">{null}</Page>;
}
