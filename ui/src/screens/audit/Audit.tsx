import { Page } from "@/kit/Page";

export default function Audit() {
  return <Page title="Audit">{null}</Page>;
}
