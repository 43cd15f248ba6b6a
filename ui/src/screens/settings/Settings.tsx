import { Page } from "@/kit/Page";

export default function Settings() {
  return <Page title="Settings">{null}</Page>;
}
