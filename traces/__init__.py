"""The waist: what happened, as Arrow tables that know no hardware."""
