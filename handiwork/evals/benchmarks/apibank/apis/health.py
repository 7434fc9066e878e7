"""APIs of health: appointments at a hospital, health data of users, and what is known of symptoms."""

from __future__ import annotations

from typing import Any

from .api import DATE, TIME, Api, ApiError, api_call, filled, identifier, parsed


class AppointmentRegistration(Api):
    """Register an appointment of a patient with a doctor at a hospital."""

    @api_call
    def call(self, patient_name: str, date: str, doctor_name: str) -> str:
        """Register the appointment on a date such as 2023-03-21, and return its id."""
        empty = "Patient name or doctor name cannot be empty."
        patient, doctor, day = filled(patient_name, empty), filled(doctor_name, empty), parsed(date, DATE)
        appointments = self.databases.read("Appointments")
        appointment = {"patient_name": patient, "date": day, "doctor_name": doctor}
        for other in appointments.values():
            if other == appointment:
                raise ApiError("This appointment has already been registered.")
            if (other["patient_name"], other["date"]) == (patient, day):
                raise ApiError("This patient has already been registered in this day.")
        key = identifier(patient, day, doctor)
        appointments[key] = appointment
        self.databases.write("Appointments", appointments)
        return key


class CancelRegistration(Api):
    """Cancel the appointment of a patient by its id."""

    @api_call
    def call(self, appointment_id: str) -> str:
        """Cancel the appointment, and return "success"."""
        appointments = self.databases.read("Appointments")
        if appointment_id.strip() not in appointments:
            raise ApiError("The appointment ID is incorrect.")
        del appointments[appointment_id.strip()]
        self.databases.write("Appointments", appointments)
        return "success"


class ModifyRegistration(Api):
    """Change the date and doctor of an appointment by its id."""

    @api_call
    def call(
        self, appointment_id: str, new_appointment_date: str | None = None, new_appointment_doctor: str | None = None
    ) -> str:
        """Change the date, such as 2023-03-21, the doctor, or both, and return "success"."""
        key, appointments = appointment_id.strip(), self.databases.read("Appointments")
        if key not in appointments:
            raise ApiError("The appointment ID does not exist.")
        changes: dict[str, str] = {}
        if new_appointment_date is not None:
            changes["date"] = parsed(new_appointment_date, DATE)
        if new_appointment_doctor is not None:
            changes["doctor_name"] = filled(new_appointment_doctor, "Fail because the doctor name is empty.")
        same = [name for name, value in changes.items() if appointments[key][name] == value]
        if len(same) == len(changes) != 1:
            raise ApiError("Fail because no modification is made.")
        if same:
            raise ApiError(f"Fail because {'date' if same == ['date'] else 'doctor'} is not changed.")
        appointments[key].update(changes)
        self.databases.write("Appointments", appointments)
        return "success"


class QueryRegistration(Api):
    """Query the appointments of a patient on a date."""

    @api_call
    def call(self, patient_name: str, date: str) -> dict[str, Any]:
        """Return the patient's appointments on a date such as 2023-03-21, by their ids."""
        wanted = patient_name.strip(), parsed(date, DATE)
        appointments = {
            key: appointment
            for key, appointment in self.databases.read("Appointments").items()
            if (appointment["patient_name"], parsed(appointment["date"], DATE)) == wanted
        }
        if not appointments:
            raise ApiError("No appointments found.")
        return appointments


class RecordHealthData(Api):
    """Record health data of a user."""

    @api_call
    def call(self, user_id: str, time: str, health_data: list[dict[str, Any]]) -> str:
        """Record data at a time; an item is {"name": "blood_pressure", "value": "120/80"}. Return "success"."""
        user, moment = filled(user_id, "The user id cannot be empty.").upper(), parsed(time, TIME)
        if not health_data:
            raise ApiError("The health data cannot be empty.")
        names = [item["name"] for item in health_data if "name" in item and "value" in item]
        if len(names) < len(health_data):
            raise ApiError("The health data has invalid format.")
        if len(set(names)) < len(names):
            raise ApiError("The health data cannot contain duplicate items.")
        data = self.databases.read("HealthData")
        records = data.setdefault(user, [])
        record = next((one for one in records if one["time"] == moment), None)
        if record is None:
            record = {"time": moment}
            records.append(record)
        record.update({item["name"]: item["value"] for item in health_data})
        self.databases.write("HealthData", data)
        return "success"


class QueryHealthData(Api):
    """Query the recorded health data of a user in a span of time."""

    @api_call
    def call(self, user_id: str, start_time: str, end_time: str) -> list[dict[str, Any]]:
        """Return the user's records between two times such as 2023-03-21 15:00:00."""
        user = filled(user_id, "The user id cannot be empty.").upper()
        start, end, data = parsed(start_time, TIME), parsed(end_time, TIME), self.databases.read("HealthData")
        if start > end:
            raise ApiError("The start time cannot be later than the end time.")
        if user not in data:
            raise ApiError("The user id does not exist.")
        return [record for record in data[user] if start <= record["time"] <= end]


class Symptoms(Api):
    """What is known of symptoms."""

    def about(self, symptom: str, field: str) -> list[dict[str, str]]:
        """Return the diseases with a symptom, each with its name and a field. Raises ApiError."""
        key, known = filled(symptom, "The symptom cannot be empty.").lower(), self.databases.read("Symptom")
        if key not in known:
            raise ApiError("The symptom does not exist.")
        return [{"name": disease["name"], field: disease[field]} for disease in known[key]]


class SymptomSearch(Symptoms):
    """Search the diseases that may cause a symptom."""

    @api_call
    def call(self, symptom: str) -> list[dict[str, str]]:
        """Return the possible diseases: [{"name": NAME, "description": TEXT}]."""
        return self.about(symptom, "description")


class EmergencyKnowledge(Symptoms):
    """Search the first aid for a symptom."""

    @api_call
    def call(self, symptom: str) -> list[dict[str, str]]:
        """Return the possible diseases with their first aid: [{"name": NAME, "aid": TEXT}]."""
        return self.about(symptom, "aid")
