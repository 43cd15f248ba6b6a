"""What Alembic runs: the changes that are missing, in the transaction of the connection it is given."""

from alembic import context

from turnmill.shelf.tables import Table

context.configure(connection=context.config.attributes["connection"], target_metadata=Table.metadata)
context.run_migrations()
